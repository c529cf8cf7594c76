// waits.h: does anybody wait for an event that was never recorded?
#pragma once
#include "conformance/checks/base/check.h"
#include "conformance/checks/program/program.h"

namespace shardproof::graph {

// GE-07, one finding a rank. Needs streams and synchronisation alone.
void JudgeWaits(const Program& program, CheckResult& result);

}  // namespace shardproof::graph
