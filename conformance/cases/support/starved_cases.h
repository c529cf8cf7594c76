// starved_cases.h: in which cases has an engine no memory left, at one allocation after the other?
//
// The profile `oom` (runner/isolation/starved_runs.h).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases/support/supported.h"

namespace shardproof {

// Cases of what the engine takes, distinct, in a fixed order: each value that it takes is in one of
// them, with a world of at most 8 ranks. world: as of FittedCases().
std::vector<Case> StarvedCases(const std::vector<CaseFactors>& spaces, const Supported& supported,
                               int32_t world, uint64_t seed);

// "values of strategies in runs without memory: 41 judged of 43" for each space that has cases.
std::vector<std::string> StarvedCoverage(const std::vector<CaseFactors>& spaces,
                                         const std::vector<Case>& cases,
                                         const std::vector<Case>& judged);

}  // namespace shardproof
