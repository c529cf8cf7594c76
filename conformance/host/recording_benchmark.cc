// What does one recorded host call cost the engine's thread? A fabric that does nothing, so only
// the front end and the recorder are measured.
#include <benchmark/benchmark.h>

#include "conformance/abi/spf.hpp"
#include "conformance/host/host.h"

namespace shardproof {
namespace {

class IdleFabric final : public Fabric {
 public:
  int rank() const override { return 0; }
  int world() const override { return 1; }
  bool aborted() const override { return false; }
  int32_t CreateStream(std::string_view, int) override { return streams_++; }
  void DestroyStream(int32_t) override {}
  spf_status SyncStream(int32_t) override { return SPF_OK; }
  int32_t CreateEvent() override { return events_++; }
  void DestroyEvent(int32_t) override {}
  void Record(int32_t, int32_t) override {}
  bool Wait(int32_t, int32_t) override { return true; }
  spf_status SyncEvent(int32_t, bool* recorded) override {
    *recorded = true;
    return SPF_OK;
  }
  Block Alloc(int32_t, uint64_t bytes, bool pinned) override {
    memory_.resize(memory_.size() + 1);
    memory_.back().resize(bytes);
    auto* host = memory_.back().data();
    return {blocks_++, reinterpret_cast<uint64_t>(host), host, bytes, pinned};
  }
  void Free(int32_t, const Block&) override {}
  void Enqueue(int32_t, std::string_view, Body) override {}
  int32_t OpenGroup(std::string_view, const std::vector<int32_t>&) override { return 0; }
  spf_status CreateGroup(int32_t, const std::vector<int32_t>&, int32_t*, std::string*) override {
    return SPF_OK;
  }
  spf_status DestroyGroup(int32_t) override { return SPF_OK; }
  spf_status RegisterBlock(int32_t, const Block&) override { return SPF_OK; }
  spf_status DeregisterBlock(int32_t, const Block&) override { return SPF_OK; }
  void Communicate(std::vector<CommOp>) override {}
  spf_status Drain() override { return SPF_OK; }
  void Fail(std::string_view) override {}

 private:
  int32_t streams_ = 0, events_ = 0, blocks_ = 0;
  std::vector<std::vector<std::byte>> memory_;
};

// A host inside train_step with a stream, an event and a block.
struct Scene {
  explicit Scene(RecordLevel level) : model(ModelConfig{}, 64), recorder(0, 1, "benchmark", level) {
    HostConfig config;
    config.model = &model;
    config.groups = {{"world", "world", {0}}};
    host = std::make_unique<Host>(config, fabric, recorder);
    host->BeginCall("train_step", 0);
    h = std::make_unique<spf::Host>(host->table());
    stream = h->Stream("main");
    event = h->Event();
    block = h->Alloc(stream, 4096, spf::For(SPF_FOR_SCRATCH));
    world = h->Group("world");
  }
  IdleFabric fabric;
  Model model;
  Recorder recorder;
  std::unique_ptr<Host> host;
  std::unique_ptr<spf::Host> h;
  spf_stream stream = nullptr;
  spf_event event = nullptr;
  spf_addr block = 0;
  spf_group world = nullptr;
};

RecordLevel LevelOf(const benchmark::State& state) {
  return static_cast<RecordLevel>(state.range(0));
}

void EventRecord(benchmark::State& state) {
  Scene s(LevelOf(state));
  for (auto _ : state) s.h->Record(s.event, s.stream);
}
void LaunchFill(benchmark::State& state) {
  Scene s(LevelOf(state));
  for (auto _ : state) s.h->Fill(s.stream, s.block, 256, SPF_F32, 0);
}
void AllReduce(benchmark::State& state) {
  Scene s(LevelOf(state));
  const auto op = spf::Host::Collective(SPF_ALL_REDUCE, s.world, s.stream, SPF_F32, s.block,
                                        s.block, 256, spf::For(SPF_FOR_GRAD));
  for (auto _ : state) s.h->Communicate({op});
}
void PublishLoss(benchmark::State& state) {
  Scene s(LevelOf(state));
  for (auto _ : state) s.h->Publish(s.stream, SPF_RESULT_LOSS, 0, 0, 1, SPF_F32, s.block);
}

// 0 off, 1 order, 2 digests. A fixed number of events keeps the trace in memory.
BENCHMARK(EventRecord)->DenseRange(0, 2)->Iterations(20000);
BENCHMARK(LaunchFill)->DenseRange(0, 2)->Iterations(20000);
BENCHMARK(AllReduce)->DenseRange(0, 2)->Iterations(20000);
BENCHMARK(PublishLoss)->DenseRange(0, 2)->Iterations(20000);

}  // namespace
}  // namespace shardproof

BENCHMARK_MAIN();
