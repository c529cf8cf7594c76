// overlap_check.h: does communication that should hide under compute really have nothing that
// orders the two?
#pragma once
#include "conformance/cases/case.h"
#include "conformance/checks/base/check.h"
#include "conformance/checks/program/lowered.h"

namespace shardproof {

// GE-12, GE-13, GE-14, for train steps of instances that ask for overlap. Traces that do not match
// or can hang are not checkable. Notes: how many gathers and reductions can hide, and the exposed
// time under a cost model.
CheckResult CheckOverlap(const Case& spec, const graph::Lowered& run);

}  // namespace shardproof
