// run_on_standin.h: how do the simulator's tests of what a Fabric promises run on NcclFabric over
// the stand-in?
//
// A test source of the simulator that is included behind this header runs its programs there: same
// programs, same expectations. What was a deadlock of the simulator is a watchdog that gave up.
#pragma once
#include "conformance/fabric/nccl/standin_testing.h"
#include "conformance/fabric/sim/sim.h"
#include "conformance/fabric/sim/testing.h"

namespace shardproof {

inline SimResult RunSimOnStandin(bool communicators_at_open, int world, const SimOptions& options,
                                 const std::function<void(Fabric&)>& rank_main) {
  StandinOptions standin;
  standin.sim = options;
  standin.communicators_at_open = communicators_at_open;
  std::vector<std::string> thrown(static_cast<size_t>(world));
  std::vector<int32_t> live_blocks(static_cast<size_t>(world));
  StandinRun run = RunStandin(world, standin, [&](BodiesOnDevice& fabric) {
    const auto rank = static_cast<size_t>(fabric.rank());
    const auto failed = [&](const std::string& what) {
      if (!fabric.aborted()) thrown[rank] = what;
    };
    try {
      rank_main(fabric);
    } catch (const std::exception& error) {
      failed(error.what());
    } catch (const char* text) {
      failed(text);
    }
    fabric.Drain();
    live_blocks[rank] = fabric.nccl().live_blocks();
  });
  SimResult result = std::move(run.sim);
  result.live_blocks = live_blocks;
  result.mismatches.insert(result.mismatches.end(), run.mismatches.begin(), run.mismatches.end());
  bool failed = false, stalled = false;
  for (size_t rank = 0; rank < run.ends.size(); ++rank) {
    const NcclEnd& end = run.ends[rank];
    if (!thrown[rank].empty() && result.errors[rank].empty()) result.errors[rank] = thrown[rank];
    if (end.cause == Watchdog::Cause::kNone && !end.reason.empty() && result.errors[rank].empty())
      result.errors[rank] = end.reason;
    failed = failed || !result.errors[rank].empty();
    stalled = stalled || end.cause == Watchdog::Cause::kStalled;
    if (!end.reason.empty())
      result.blocked[rank] = "host waits in " + end.host + "\n" + end.pending;
    result.aborted = result.aborted || !end.reason.empty();
  }
  result.deadlock = stalled && !failed;
  return result;
}

}  // namespace shardproof

#ifdef SHARDPROOF_COMMUNICATORS_AT_OPEN
#define RunSim(...) RunSimOnStandin(true, __VA_ARGS__)
#else
#define RunSim(...) RunSimOnStandin(false, __VA_ARGS__)
#endif
