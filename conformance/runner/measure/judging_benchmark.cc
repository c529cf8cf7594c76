// How long does a case take: to choose, to run on the simulated machine, to judge, to write down
// and read again, and to print line by line? The reference engine; ci/bench compares two builds.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <stdexcept>

#include "conformance/cases/profiles.h"
#include "conformance/checks/base/analysis.h"
#include "conformance/runner/judge.h"
#include "conformance/runner/replay/event_line.h"
#include "conformance/runner/scratch_folder.h"
#include "conformance/runner/sim_run.h"
#include "conformance/trace/reader.h"
#include "conformance/trace/writer.h"

namespace shardproof {
namespace {

// One of each kind of engine.
constexpr const char* kCases[] = {"w4.zero3.k2.adamw", "w4.zero3.ep2.k2.moe4.1f1b",
                                  "w4.lw.ogr.opg.adamw.lr0p0625"};

// A run of it, made once.
struct Scene {
  explicit Scene(const benchmark::State& state)
      : spec(ParseId(kCases[state.range(0)])), models(MakeModels(spec)) {
    options.rank.folder = scratch.path();
    data = Run();
    for (const EngineOutcome& outcome : data.run.outcomes)
      if (outcome.kind != EngineOutcome::Kind::kOk)
        throw std::runtime_error(outcome.call + ": " + outcome.reason);
  }
  RunData Run() { return RunOnSim(spec, models, plugin, options); }

  const ScratchFolder scratch;
  const Plugin plugin{"builtin:reference"};
  const Case spec;
  const Models models;
  SimRunOptions options;
  RunData data;
};

int64_t EventsOf(const RunData& data) {
  int64_t events = 0;
  for (const Trace& trace : data.run.traces) events += static_cast<int64_t>(trace.events.size());
  return events;
}

void RunCaseOnSim(benchmark::State& state) {
  Scene scene(state);
  for (auto unused : state) benchmark::DoNotOptimize(scene.Run());
  state.SetItemsProcessed(state.iterations() * EventsOf(scene.data));
}

void Judge(benchmark::State& state) {
  const Scene scene(state);
  for (auto unused : state) {
    const Verdict verdict = JudgeRun(scene.spec, scene.data.run);
    if (IsGood(verdict)) continue;
    state.SkipWithError("the reference does not pass");
    break;
  }
  state.SetItemsProcessed(state.iterations() * EventsOf(scene.data));
}

void WriteAndRead(benchmark::State& state) {
  const Scene scene(state);
  const std::string folder = scene.scratch.path() + "/traces";
  std::filesystem::create_directories(folder);
  for (auto unused : state) {
    WriteTraceFolder(scene.data.run.traces, folder);
    benchmark::DoNotOptimize(ReadTraceFolder(folder));
  }
  state.SetItemsProcessed(state.iterations() * EventsOf(scene.data));
}

void ReplayLines(benchmark::State& state) {
  const Scene scene(state);
  const Analysis analysis(scene.data.run);
  for (auto unused : state) {
    const EventLines lines(analysis);
    for (size_t i = 0; i < analysis.trace(0).events.size(); ++i)
      benchmark::DoNotOptimize(lines.Text(0, static_cast<int64_t>(i), 4));
  }
}

// The core profile of one rank with its spaces, as a run begins.
void ChooseCases(benchmark::State& state) {
  for (auto unused : state) {
    Spaces spaces;
    benchmark::DoNotOptimize(Profile("core", "nccl", spaces, 1, 1));
  }
}

BENCHMARK(RunCaseOnSim)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(Judge)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(WriteAndRead)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(ReplayLines)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(ChooseCases)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardproof

BENCHMARK_MAIN();
