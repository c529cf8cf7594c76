// starved_runs.h: what does an engine do when there is no device memory left?
//
// For a case that is starved. It is run again and again, and each time another allocation of device
// memory is answered SPF_NO_MEMORY, once: up to kMostStarved of them, spread over ranks and over
// the whole script.
#pragma once
#include "conformance/runner/judge.h"
#include "conformance/runner/sim_run.h"

namespace shardproof {

inline constexpr int64_t kMostStarved = 24;

// The verdict on the case, given the one on its run with enough memory. run: as of RunApart().
Verdict JudgeStarvedRuns(Verdict fed, const Case& c, const RunCase& run,
                         const SimRunOptions& options);

}  // namespace shardproof
