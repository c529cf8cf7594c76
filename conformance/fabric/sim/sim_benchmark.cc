// How fast do fibers switch, and how many steps a second does a world take?
#include <benchmark/benchmark.h>

#include <memory>

#include "conformance/fabric/sim/fiber.h"
#include "conformance/fabric/sim/testing.h"

namespace shardproof {
namespace {

void FiberSwitch(benchmark::State& state) {
  bool stop = false;
  std::unique_ptr<Fiber> fiber;
  fiber = std::make_unique<Fiber>(64 << 10, [&] {
    while (!stop) fiber->Yield();
  });
  for (auto unused : state) fiber->Resume();
  stop = true;
  fiber->Resume();
  state.SetItemsProcessed(2 * state.iterations());  // there and back
}
BENCHMARK(FiberSwitch);

void WorldSteps(benchmark::State& state) {
  const auto policy = static_cast<TimingPolicy>(state.range(0));
  const auto world = static_cast<int>(state.range(1));
  uint64_t steps = 0;
  for (auto unused : state) {
    const SimResult result = RunSim(world, With(policy), [](Fabric& f) {
      Program p(f);
      const int32_t compute = f.CreateStream("compute", 0), comm = f.CreateStream("comm", 0);
      for (int i = 0; i < 100; ++i) {
        const Block block = p.Floats(comm, 16);
        p.AllReduce(p.world, comm, block);
        p.After(compute, comm);
        f.Enqueue(compute, "work", [] {});
        f.Free(comm, block);
      }
      f.Drain();
    });
    steps += result.timing_steps;
  }
  state.SetItemsProcessed(static_cast<int64_t>(steps));
}
BENCHMARK(WorldSteps)->ArgsProduct({{0, 1, 2, 3, 4}, {4, 64}})->Unit(benchmark::kMillisecond);

void EmptyWorld(benchmark::State& state) {
  for (auto unused : state)
    RunSim(static_cast<int>(state.range(0)), With(TimingPolicy::kEager), [](Fabric&) {});
}
BENCHMARK(EmptyWorld)->Arg(4)->Arg(64)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace shardproof

BENCHMARK_MAIN();
