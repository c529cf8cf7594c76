// verdict_io.h: how does a verdict travel from the process that judged a case to the one that
// reports it?
#pragma once
#include <string>

#include "conformance/runner/judge.h"
#include "conformance/runner/workers/worker.h"

namespace shardproof {

std::string PackVerdict(const Verdict& verdict);
Verdict UnpackVerdict(
    const std::string& packed);  // throws std::runtime_error when the text is not whole

// What a worker has packed. It runs no engine code, so an end without a verdict is the suite's
// failure.
Verdict VerdictOfWorker(const WorkResult& result);

}  // namespace shardproof
