// Do the device kernels give the host's bits on a real device: every node and phase of the model,
// every named kernel?
//
// model/cuda tests the same sources on a queue without a GPU, with more shapes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "conformance/fabric/nccl/cuda_testing.h"
#include "conformance/model/cuda/launch.h"
#include "conformance/model/cuda/node.h"
#include "conformance/model/node_bench.h"

namespace shardproof {
namespace {

// A NodeBench whose nodes are computed on the device: all blocks go there and come back.
class CudaBench : public NodeBench {
 public:
  CudaBench(Gpu& gpu, int32_t stream, const ModelConfig& config, int64_t max_tokens, ModelRank rank)
      : NodeBench(config, max_tokens, rank),
        gpu_(gpu),
        stream_(stream),
        end_(gpu.CreateEvent(false)) {}

 protected:
  void Compute(const NodeArgs& args) const override {
    Packed packed;
    for (int32_t id = 0; id < tables().n_params; ++id) {
      const auto numel = static_cast<size_t>(tables().params[id].numel);
      packed.Add(args.param[id], numel * (model().config().bf16_params ? 2 : 4));
      packed.Add(args.grad[id], numel * sizeof(float));
    }
    for (int32_t id = 0; id < tables().n_values; ++id) {
      const spf_value& value = tables().values[id];
      const auto elements = static_cast<size_t>(value.max_rows * value.row_elems);
      const size_t bytes = elements * (value.dtype == SPF_I64 ? sizeof(int64_t) : sizeof(float));
      packed.Add(args.act[id], bytes);
      packed.Add(args.dact[id], bytes);
    }
    Queue& queue = gpu_.QueueOf(stream_);
    std::byte* data = gpu_.Alloc(stream_, packed.bytes.size()).data;
    queue.Upload(data, packed.bytes.data(), packed.bytes.size());
    RunThere(queue, args, packed, data);
    queue.Download(packed.bytes.data(), data, packed.bytes.size());
    gpu_.Free(stream_, data);
    gpu_.Record(end_, stream_);
    gpu_.Await(end_, {});
    packed.Unpack();
  }

 private:
  // All blocks one behind the other, each aligned as allocations are.
  struct Packed {
    void Add(const void* memory, size_t size) {
      places.push_back({const_cast<void*>(memory), bytes.size(), size});
      const size_t begin = bytes.size();
      bytes.resize((begin + size + 255) / 256 * 256);
      if (size > 0) std::memcpy(bytes.data() + begin, memory, size);
    }
    void Unpack() const {
      for (const Place& place : places) {
        if (place.size > 0) std::memcpy(place.memory, bytes.data() + place.begin, place.size);
      }
    }
    struct Place {
      void* memory;
      size_t begin, size;
    };
    std::vector<Place> places;
    std::vector<std::byte> bytes;
  };

  void RunThere(Queue& queue, const NodeArgs& args, const Packed& packed, std::byte* data) const {
    std::vector<const void*> param;
    std::vector<void*> grad, act, dact;
    size_t place = 0;
    const auto next = [&]() -> void* { return data + packed.places[place++].begin; };
    for (int32_t id = 0; id < tables().n_params; ++id) {
      param.push_back(next());
      grad.push_back(next());
    }
    for (int32_t id = 0; id < tables().n_values; ++id) {
      act.push_back(next());
      dact.push_back(next());
    }
    NodeArgs there = args;
    there.param = param.data(), there.grad = grad.data(), there.act = act.data(),
    there.dact = dact.data();
    RunNode(queue, model(), there, rank());
  }

  Gpu& gpu_;
  int32_t stream_, end_;
};

struct Call {
  double scale = 1;
  int32_t grad_dtype = SPF_F32;
  int64_t step = 0, sample = 0;
};

class CudaKernelsTest : public CudaTest, public testing::WithParamInterface<GemmMode> {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (gpu_ != nullptr) Open({.gemm = GetParam()});
  }

  void ExpectSame(const NodeBench& host, Blocks& found, Blocks& wanted, int32_t grad_dtype) {
    for (int32_t table : {SPF_IN_GRAD, SPF_IN_ACT, SPF_IN_DACT}) {
      for (size_t id = 0; id < wanted.Table(table).size(); ++id) {
        const size_t width = table == SPF_IN_GRAD && grad_dtype == SPF_BF16 ? 2 : 4;
        const char* name =
            table == SPF_IN_GRAD ? host.tables().params[id].name : host.tables().values[id].name;
        EXPECT_EQ(Difference(found.Table(table)[id], wanted.Table(table)[id], width), "")
            << "table " << table << ", " << name;
      }
    }
  }

  // Each phase of each node, from the state that a sample leaves on the host.
  void CheckNodes(const ModelConfig& config, const Call& call) {
    const int64_t tokens = config.narrow ? 8 : 32;
    for (int32_t ep = 0; ep < config.ep; ++ep) {
      const NodeBench host(config, tokens, {ep, 0});
      const CudaBench device(*gpu_, stream_, config, tokens, {ep, 0});
      Blocks state = host.Start();
      host.RunSample(state, call.step, call.sample, false, call.scale, call.grad_dtype);
      const spf_program& program = host.program(call.step, call.sample);
      for (int32_t i = 0; i < program.n_nodes; ++i) {
        const spf_node& node = program.nodes[i];
        if (node.kind == SPF_NODE_EXCHANGE) continue;
        for (spf_phase phase : {SPF_FWD, SPF_BWD, SPF_DGRAD, SPF_WGRAD}) {
          SCOPED_TRACE(std::string(node.name) + " phase " + std::to_string(phase));
          Blocks wanted = state, found = state;
          host.Run(wanted, node, phase, call.scale, call.grad_dtype, call.step, call.sample);
          device.Run(found, node, phase, call.scale, call.grad_dtype, call.step, call.sample);
          ExpectSame(host, found, wanted, call.grad_dtype);
        }
      }
    }
  }
};

TEST_P(CudaKernelsTest, NodesGiveTheHostsBits) {
  for (const ModelConfig& config : VariedConfigs()) CheckNodes(config, {});
}

TEST_P(CudaKernelsTest, NodesGiveThemWithALossScaleAndGradientsInBf16) {
  for (const ModelConfig& config : VariedConfigs()) {
    CheckNodes(config, {.scale = 0.125, .grad_dtype = SPF_BF16, .step = 1, .sample = 1});
  }
}

// Forward and backward of several samples: what one leaves is the next one's.
TEST_P(CudaKernelsTest, TrainingGivesTheHostsBits) {
  for (const ModelConfig& config : VariedConfigs()) {
    const int64_t tokens = config.narrow ? 8 : 32;
    const NodeBench host(config, tokens);
    const CudaBench device(*gpu_, stream_, config, tokens, {});
    Blocks wanted = host.Start(), found = wanted;
    for (int64_t sample = 0; sample < 3; ++sample) {
      host.RunSample(wanted, 0, sample, sample == 1, 4);
      device.RunSample(found, 0, sample, sample == 1, 4);
    }
    ExpectSame(host, found, wanted, SPF_F32);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, CudaKernelsTest,
                         testing::Values(GemmMode::kFp32, GemmMode::kTf32, GemmMode::kBf16),
                         ModeName);

class CudaLaunchTest : public CudaTest {
 protected:
  static std::vector<std::byte> Random(int32_t dtype, uint64_t count, std::mt19937& random) {
    std::normal_distribution<double> normal;
    std::vector<std::byte> bytes;
    const auto put = [&bytes](auto value) {
      const auto* begin = reinterpret_cast<const std::byte*>(&value);
      bytes.insert(bytes.end(), begin, begin + sizeof value);
    };
    for (uint64_t i = 0; i < count; ++i) {
      const double value = normal(random);
      if (dtype == SPF_F64) put(value);
      if (dtype == SPF_F32) put(static_cast<float>(value));
      if (dtype == SPF_BF16) put(ToBf16(static_cast<float>(value)));
    }
    return bytes;
  }

  // spans: dtype, count, access. All memory is compared, byte for byte: there are no NaNs in it.
  void ExpectSame(int32_t kernel, std::vector<SpanData> spans, const std::vector<double>& scalars) {
    std::vector<std::vector<std::byte>> wanted;
    for (const SpanData& span : spans) wanted.push_back(Random(span.dtype, span.count, random_));
    std::vector<SpanData> there = spans;
    for (size_t i = 0; i < spans.size(); ++i) {
      there[i].data = ToDevice(wanted[i]);
      spans[i].data = wanted[i].data();
    }
    ASSERT_EQ(ValidateLaunch(kernel, spans, scalars), "");
    RunLaunchOnDevice(gpu_->QueueOf(stream_), kernel, there, scalars);
    RunLaunch(kernel, spans, scalars);
    for (size_t i = 0; i < spans.size(); ++i) {
      EXPECT_EQ(FromDevice(there[i].data, wanted[i].size()), wanted[i])
          << "kernel " << kernel << ", span " << i;
    }
  }

  std::mt19937 random_{5};
};

TEST_F(CudaLaunchTest, NamedKernelsGiveTheHostsBits) {
  const SpanData scalar{nullptr, 1, SPF_F64, SPF_READ}, sum{nullptr, 1, SPF_F64, SPF_ADD};
  for (uint64_t count : {uint64_t{1}, uint64_t{4097}, uint64_t{100000}}) {
    for (int32_t x : {SPF_F32, SPF_BF16, SPF_F64}) {
      for (int32_t y : {SPF_F32, SPF_BF16, SPF_F64}) {
        ExpectSame(SPF_K_AXPBY, {{nullptr, count, x, SPF_READ}, {nullptr, count, y, SPF_ADD}},
                   {0.3, 0.7});
        ExpectSame(SPF_K_AXPBY,
                   {{nullptr, count, x, SPF_READ}, {nullptr, count, y, SPF_WRITE}, scalar},
                   {1.1, 0});
      }
      ExpectSame(SPF_K_FILL, {{nullptr, count, x, SPF_WRITE}}, {0.1});
      for (int32_t kernel : {SPF_K_SUM_SQUARES, SPF_K_COUNT_NONFINITE, SPF_K_COUNT_ZERO}) {
        ExpectSame(kernel, {{nullptr, count, x, SPF_READ}, sum}, {});
      }
    }
    const SpanData state{nullptr, count, SPF_F32, SPF_ADD}, grad{nullptr, count, SPF_F32, SPF_READ};
    ExpectSame(SPF_K_AXPBY, {grad, state}, {-0.125, 1});
  }
}

// v, a sum of squares, is not negative: the test's is its own.
TEST_F(CudaLaunchTest, OptimizerStepsGiveTheHostsBits) {
  constexpr uint64_t kCount = 4097;
  std::vector<std::vector<float>> host(4, std::vector<float>(kCount));
  std::normal_distribution<float> normal;
  for (auto& values : host) {
    for (float& value : values) value = normal(random_);
  }
  for (float& value : host[2]) value = value * value;
  std::vector<SpanData> here, there;
  for (size_t i = 0; i < host.size(); ++i) {
    const SpanData span{reinterpret_cast<std::byte*>(host[i].data()), kCount, SPF_F32,
                        i < 3 ? SPF_ADD : SPF_READ};
    here.push_back(span);
    there.push_back(span);
    there[i].data = reinterpret_cast<std::byte*>(ToDevice(host[i]));
  }
  for (double t : {1.0, 2.0, 100.0}) {
    const std::vector<double> scalars = {0.1, 0.9, 0.999, 1e-3, 0.01, t};
    ASSERT_EQ(ValidateLaunch(SPF_K_ADAMW, here, scalars), "");
    RunLaunch(SPF_K_ADAMW, here, scalars);
    RunLaunchOnDevice(gpu_->QueueOf(stream_), SPF_K_ADAMW, there, scalars);
  }
  for (size_t i = 0; i < host.size(); ++i) {
    EXPECT_EQ(FromDevice(reinterpret_cast<const float*>(there[i].data), kCount), host[i])
        << "span " << i;
  }
}

// As Newton-Schulz uses it: not exact, so that the order of sums counts.
TEST_F(CudaLaunchTest, MatrixKernelsGiveTheHostsBits) {
  for (double transposed : {0.0, 1.0}) {
    ExpectSame(SPF_K_GEMM,
               {{nullptr, 24 * 40, SPF_F32, SPF_READ},
                {nullptr, 40 * 33, SPF_F32, SPF_READ},
                {nullptr, 24 * 33, SPF_F32, SPF_ADD}},
               {24, 33, 40, transposed, 1 - transposed, 0.7, -0.3});
  }
}

TEST_F(CudaLaunchTest, NormScalesAreTheHosts) {
  for (int trial = 0; trial < 20; ++trial) {
    const double ss = static_cast<double>(trial) * 0.37;
    double host = -1;
    const std::vector<double> scalars = {1, 1e-6, 1};
    double* in = ToDevice(std::vector<double>{ss});
    double* out = ToDevice(std::vector<double>{-1});
    double input = ss;
    RunLaunch(SPF_K_NORM_SCALE,
              {{reinterpret_cast<std::byte*>(&input), 1, SPF_F64, SPF_READ},
               {reinterpret_cast<std::byte*>(&host), 1, SPF_F64, SPF_WRITE}},
              scalars);
    RunLaunchOnDevice(gpu_->QueueOf(stream_), SPF_K_NORM_SCALE,
                      {{reinterpret_cast<std::byte*>(in), 1, SPF_F64, SPF_READ},
                       {reinterpret_cast<std::byte*>(out), 1, SPF_F64, SPF_WRITE}},
                      scalars);
    EXPECT_EQ(FromDevice(out, 1)[0], host);
  }
}

}  // namespace
}  // namespace shardproof
