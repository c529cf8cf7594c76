// overlap_check.h: does communication that should hide under compute really have nothing that
// orders the two?
#pragma once
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/checks/base/check.h"
#include "conformance/checks/graph/brought.h"
#include "conformance/checks/program/lowered.h"

namespace shardproof {

// GE-12, GE-13, GE-14, for train steps of instances that ask for overlap. Traces that do not match
// or can hang are not checkable. Notes: how many gathers and reductions can hide, and the exposed
// time under a cost model. brought: by rank, or empty; then labels alone tell what travels.
CheckResult CheckOverlap(const Case& spec, const graph::Lowered& run,
                         const std::vector<BroughtByEvent>& brought = {});

}  // namespace shardproof
