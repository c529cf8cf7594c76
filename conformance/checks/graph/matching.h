// matching.h: do the members of each communicator issue operations that meet?
//
// The first check: everything else pairs operations by position, which means nothing when sequences
// differ.
#pragma once
#include <vector>

#include "conformance/checks/base/check.h"
#include "conformance/checks/program/program.h"

namespace shardproof::graph {

// GE-01, GE-02, GE-08, GE-09, GE-15 to GE-17 (registered_buffers.h). Sequences that are shorter
// only because the run was ended are no finding by themselves: missing tells of them, and the
// deadlock check finds out why.
struct Matching {
  bool ok = true;              // operations that stand at the same position are the same
  bool cut = false;            // some are missing on ranks whose traces end early
  uint32_t first_missing = 0;  // if cut: an operation
};
Matching JudgeMatching(const Program& program, CheckResult& result);

// If a run was cut and no cycle explains it: the first operation that somebody waits for in vain.
void ReportMissing(const Program& program, uint32_t operation, CheckResult& result);

}  // namespace shardproof::graph
