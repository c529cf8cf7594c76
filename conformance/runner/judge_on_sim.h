// judge_on_sim.h: how does a case get its verdict on the simulated machine?
#pragma once
#include "conformance/runner/judge.h"
#include "conformance/runner/sim_run.h"

namespace shardproof {

// Runs the case under the timing that the options say, then, if nothing is wrong with that run,
// its partners; judges all of it. What fails in the suite is the verdict, too.
Verdict JudgeOnSim(const Case& c, const RunCase& run, const SimRunOptions& options);

}  // namespace shardproof
