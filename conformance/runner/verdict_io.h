// verdict_io.h: how does a verdict travel from the process that judged a case to the one that
// reports it?
#pragma once
#include <string>

#include "conformance/runner/judge.h"

namespace shardproof {

std::string PackVerdict(const Verdict& verdict);
Verdict UnpackVerdict(
    const std::string& packed);  // throws std::runtime_error when the text is not whole

}  // namespace shardproof
