// robustness.h: did every rank answer as the interface asks, and did the run survive?
//
// Judges PG-16, GE-20 to GE-28 and GE-37 from outcomes, refusals, the knobs that were read and what
// was left behind.
#pragma once
#include "conformance/checks/base/analysis.h"

namespace shardproof {

CheckResult CheckRobustness(const Analysis& a);

const char* OutcomeName(EngineOutcome::Kind kind);

}  // namespace shardproof
