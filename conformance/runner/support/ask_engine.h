// ask_engine.h: does an engine take these cases?
#pragma once
#include <string>
#include <vector>

#include "conformance/cases/case.h"

namespace shardproof {

// Runs each case on sim, many in one process of their own; for each, in order: not all ranks
// of its grid answer UNSUPPORTED or REJECTED. An engine that ends its process, or hangs, takes the
// case: what it does there is for a verdict to say. Throws std::runtime_error for what fails in the
// suite.
std::vector<bool> AskEngine(const std::string& address, double stall_seconds,
                            const std::vector<Case>& cases);

}  // namespace shardproof
