// robustness.h: did every rank answer as the interface asks, and did the run survive?
//
// Judges PG-16, GE-20 to GE-28 and GE-37 from outcomes, refusals, the knobs that were read and what
// was left behind.
#pragma once
#include <string>
#include <vector>

#include "conformance/checks/base/analysis.h"

namespace shardproof {

CheckResult CheckRobustness(const Analysis& a);

// Feature knobs that the case sets and that create did not read on some rank: the case is
// unsupported by this engine. Returns whether there are any. False without a case.
bool UnreadFeatureKnobs(const Run& run, std::vector<std::string>* knobs);

const char* OutcomeName(EngineOutcome::Kind kind);

}  // namespace shardproof
