// judge_on_sim.h: how does a case get its verdict on the simulated machine?
#pragma once
#include <functional>

#include "conformance/runner/judge.h"
#include "conformance/runner/sim_run.h"

namespace shardproof {

// Runs the case under the timing that the options say, then, if nothing is wrong with that run,
// its partners; judges all of it. What fails in the suite is the verdict, too.
// Of a case with several legs, each is judged, up to the first that does not pass: it decides.
// saw: is shown the run that the verdict is on, before its partners; may be null.
using SawRun = std::function<void(const Case& leg, const Run& run)>;
Verdict JudgeOnSim(const Case& c, const RunCase& run, const SimRunOptions& options,
                   const SawRun& saw = nullptr);

}  // namespace shardproof
