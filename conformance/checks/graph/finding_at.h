// finding_at.h: how does a finding name an event of a trace, for those who know no case?
#pragma once
#include <cstdint>

#include "conformance/checks/base/check.h"
#include "conformance/checks/program/program.h"

namespace shardproof::graph {

// A finding at an event, with rank, step, stream and operation filled in.
Finding FindingAt(const char* requirement, const Program& program, int32_t rank, int64_t event);

}  // namespace shardproof::graph
