// device_executor_test: does what a GPU promises arrive, when, and in the right place?
#include "conformance/host/cuda/device_executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/cuda/immediate_queue.h"
#include "conformance/host/cpu_executor.h"
#include "conformance/model/cuda/late_queue.h"
#include "conformance/trace/digest.h"

namespace shardproof {
namespace {

template <class T>
std::byte* Bytes(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}
template <class T>
SpanData Span(std::vector<T>& values, int32_t dtype, int32_t access) {
  return {Bytes(values), values.size(), dtype, access};
}
uint64_t DigestOf(const std::vector<float>& x, int64_t first = 0) {
  return DigestValues(x.data(), SPF_F32, first, static_cast<int64_t>(x.size()));
}

// Two streams that run when they are told to.
struct LateStreams {
  std::map<int32_t, LateQueue> queues;
  DeviceExecutor executor{[this](int32_t stream) -> Queue& { return queues[stream]; }};

  void Digest(int32_t stream, std::vector<float>& x, uint64_t* sum) {
    executor.Digest(stream, Bytes(x), SPF_F32, 0, static_cast<int64_t>(x.size()), sum);
  }
  void Values(int32_t stream, std::vector<float>& x, std::vector<double>* values) {
    executor.Values(stream, Bytes(x), SPF_F32, static_cast<int64_t>(x.size()), values);
  }
};

TEST(DeviceExecutor, DigestsAreAddedWhenTheyAreCollected) {
  LateStreams late;
  std::vector<float> a{1, 2, 3}, b{-0.0f, 5};
  uint64_t sum = 7;
  bool done = false;
  late.Digest(0, a, &sum);
  late.executor.Digest(0, Bytes(b), SPF_F32, 100, 2, &sum);
  late.executor.Digest(0, Bytes(b), SPF_F32, 0, 0, &sum);
  late.executor.Done(0, &done);
  late.queues[0].Flush();
  EXPECT_EQ(sum, 7u);
  EXPECT_FALSE(done);
  late.executor.Collect();
  EXPECT_EQ(sum, 7 + DigestOf(a) + DigestOf(b, 100));
  EXPECT_TRUE(done);
}

TEST(DeviceExecutor, ValuesAreThoseOfTheirPlaceInTheStream) {
  LateStreams late;
  std::vector<float> x{1, 2}, changed{3, 4};
  std::vector<uint16_t> narrow{0x3F80};
  std::vector<double> before, after, of_bf16, none{1, 2, 3};
  bool first = false, second = false;
  late.Values(0, x, &before);
  late.executor.Done(0, &first);
  late.executor.Write(0, Bytes(x), changed.data(), 8);
  changed = {9, 9};  // read before Write returned
  late.Values(0, x, &after);
  late.executor.Values(0, Bytes(narrow), SPF_BF16, 1, &of_bf16);
  late.executor.Values(0, nullptr, SPF_F32, 0, &none);
  late.executor.Done(0, &second);
  late.queues[0].Flush();
  late.executor.Collect();
  EXPECT_EQ(before, (std::vector<double>{1, 2}));
  EXPECT_EQ(after, (std::vector<double>{3, 4}));
  EXPECT_EQ(of_bf16, std::vector<double>{1});
  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(first && second);
}

// An aborted run: stream 1 ran, stream 0 never will.
TEST(DeviceExecutor, WhatAStreamDidNotReachStaysAsItWas) {
  LateStreams late;
  std::vector<float> x{1, 2};
  uint64_t sums[2] = {0, 0};
  std::vector<double> values[2];
  bool done[2] = {false, false};
  for (const int32_t stream : {0, 1}) {
    late.Digest(stream, x, &sums[stream]);
    late.Values(stream, x, &values[stream]);
    late.executor.Done(stream, &done[stream]);
  }
  late.queues[1].Flush();
  late.executor.Collect();
  EXPECT_EQ(sums[0], 0u);
  EXPECT_TRUE(values[0].empty());
  EXPECT_FALSE(done[0]);
  EXPECT_EQ(sums[1], DigestOf(x));
  EXPECT_EQ(values[1].size(), 2u);
  EXPECT_TRUE(done[1]);
}

TEST(DeviceExecutor, StreamsAndSumsDoNotMix) {
  LateStreams late;
  std::vector<float> x{1, 2}, y{3};
  uint64_t a = 0, b = 0, c = 0;
  bool done[2] = {false, false};
  late.Digest(0, x, &a);
  late.Digest(1, y, &b);
  late.Digest(0, y, &c);  // another sum before the stream's Done
  late.Digest(0, x, &a);
  late.executor.Done(1, &done[1]);
  late.executor.Done(0, &done[0]);
  late.queues[1].Flush();
  late.queues[0].Flush();
  late.executor.Collect();
  EXPECT_EQ(a, 2 * DigestOf(x));
  EXPECT_EQ(b, DigestOf(y));
  EXPECT_EQ(c, DigestOf(y));
  EXPECT_TRUE(done[0] && done[1]);
}

TEST(DeviceExecutor, ADoneOfNothing) {
  LateStreams late;
  bool done = false;
  late.executor.Done(3, &done);
  late.queues[3].Flush();
  late.executor.Collect();
  EXPECT_TRUE(done);
}

TEST(DeviceExecutor, MemoryIsFilledAndCopiedInStreamOrder) {
  LateStreams late;
  std::vector<float> x{1, 2}, y{3, 4}, w{5, 6};
  late.executor.Copy(0, Bytes(y), Bytes(x), 8);
  late.executor.Fill(0, Bytes(x), 0xFF, 4);
  late.executor.Launch(0, SPF_K_AXPBY, {Span(w, SPF_F32, SPF_READ), Span(y, SPF_F32, SPF_ADD)},
                       {1, 1});
  EXPECT_EQ(y, (std::vector<float>{3, 4}));
  late.queues[0].Flush();
  EXPECT_EQ(y, (std::vector<float>{6, 8}));
  EXPECT_NE(x[0], x[0]);
  EXPECT_EQ(x[1], 2);
}

// A kernel of an engine: y = 2 x, and it remembers with what it was called.
struct Seen {
  void* stream = nullptr;
  void* x = nullptr;
  bool inside = false;
  std::atomic<std::thread::id>* guard = nullptr;
};
void Twice(void* stream, void* const* data, const void* arg) {
  Seen* seen = nullptr;
  std::memcpy(&seen, arg, sizeof seen);
  seen->stream = stream;
  seen->x = data[0];
  seen->inside = seen->guard->load() == std::this_thread::get_id();
  if (stream != nullptr) return;
  static_cast<float*>(data[1])[0] = 2 * static_cast<const float*>(data[0])[0];
  static_cast<float*>(data[0])[0] = 77;  // declared as read: must not come through
}
CustomKernel TwiceOf(std::vector<float>& x, std::vector<float>& y, Seen* seen) {
  CustomKernel kernel;
  kernel.fn = Twice;
  kernel.arg.resize(sizeof seen);
  std::memcpy(kernel.arg.data(), &seen, sizeof seen);
  kernel.spans = {Span(x, SPF_F32, SPF_READ), Span(y, SPF_F32, SPF_WRITE)};
  kernel.inside = std::make_shared<std::atomic<std::thread::id>>();
  seen->guard = kernel.inside.get();
  return kernel;
}

TEST(DeviceExecutor, AnEnginesKernelRunsOnCopiesWhereThereIsNoGpu) {
  LateStreams late;
  std::vector<float> x{4}, y{0};
  Seen seen;
  {
    const CustomKernel kernel = TwiceOf(x, y, &seen);
    late.executor.Custom(0, kernel);
  }
  EXPECT_EQ(y[0], 0);
  x[0] = 5;
  late.queues[0].Flush();
  EXPECT_EQ(y[0], 10);
  EXPECT_EQ(x[0], 5);
  EXPECT_EQ(seen.stream, nullptr);
  EXPECT_TRUE(seen.inside);
}

// A queue as a GPU's: kernels that others bring are launched at once.
class NativeQueue : public ImmediateQueue {
 public:
  void* native() const override { return const_cast<NativeQueue*>(this); }
  void Run(std::function<void()>) override { throw std::logic_error("no loops on the host here"); }
  void CheckLaunch(const char* kernel) override { checked = kernel; }
  std::string checked;
};

TEST(DeviceExecutor, AnEnginesKernelGetsTheStreamAndDevicePointers) {
  NativeQueue queue;
  DeviceExecutor executor([&](int32_t) -> Queue& { return queue; });
  std::vector<float> x{4}, y{0};
  Seen seen;
  const CustomKernel kernel = TwiceOf(x, y, &seen);
  executor.Custom(0, kernel);
  EXPECT_EQ(seen.stream, &queue);
  EXPECT_EQ(seen.x, x.data());
  EXPECT_TRUE(seen.inside);
  EXPECT_EQ(kernel.inside->load(), std::thread::id());
  EXPECT_EQ(queue.checked, "CUSTOM");
}

// The program's first node: the tokens of a sample.
TEST(DeviceExecutor, ComputesNodesOfTheModel) {
  const Model model(ModelConfig{}, 64);
  const spf_model& tables = model.Tables({});
  const spf_program& program = model.Program(0, 3, {});
  NodeArgs args;
  args.node = program.nodes[0].id;
  args.phase = SPF_FWD;
  args.sample = 3;
  const auto run = [&](Executor& executor) {
    std::vector<std::vector<int32_t>> memory(static_cast<size_t>(tables.n_values));
    std::vector<void*> act(memory.size());
    for (int32_t i = 0; i < program.nodes[0].uses[SPF_FWD].n; ++i) {
      const auto id = static_cast<size_t>(program.nodes[0].uses[SPF_FWD].use[i].id);
      memory[id].assign(
          static_cast<size_t>(tables.values[id].max_rows * tables.values[id].row_elems), -1);
      act[id] = memory[id].data();
    }
    args.act = act.data();
    executor.Compute(0, model, args, {});
    return memory;
  };
  CpuExecutor cpu;
  ImmediateQueue queue;
  DeviceExecutor device([&](int32_t) -> Queue& { return queue; });
  const auto want = run(cpu);
  EXPECT_EQ(run(device), want);
  EXPECT_NE(want, std::vector<std::vector<int32_t>>(want.size()));
}

}  // namespace
}  // namespace shardproof
