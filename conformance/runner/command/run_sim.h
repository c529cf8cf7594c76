// run_sim.h: how are cases judged on the simulated machine, many at once?
#pragma once
#include "conformance/runner/options.h"

namespace shardproof {

// Cases, and ranges of timings of one case, are items of workers (workers/worker_pool.h). Answers
// the exit code.
int RunSimCommand(const Options& options);

}  // namespace shardproof
