// registered_buffers.h: do the members of a communicator register alike, and use what they
// registered alike?
#pragma once
#include "conformance/checks/base/check.h"
#include "conformance/checks/program/program.h"

namespace shardproof::graph {

// GE-15 (sizes; the matching check judges how many), GE-16 and GE-17, if anybody registers
// anything. matched: operations at the same position are the same, so that their buffers can be
// compared.
void JudgeRegisteredBuffers(const Program& program, bool matched, CheckResult& result);

}  // namespace shardproof::graph
