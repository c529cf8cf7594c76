// fitted_profile.h: which cases does a profile ask an engine of which is known what it takes?
//
// Every pair (core) or triple (full) of the values that it takes, in each space. A case differs
// from a base, the plainest case that the engine takes, in few knobs: what fails is easy to read.
// Beside them stand the suite's cases for single situations and those that must be refused, which
// do not depend on the engine.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases/support/supported.h"

namespace shardproof {

// Legal cases, distinct, in a fixed order. strength: 2 or 3.
std::vector<Case> FittedCases(const std::vector<CaseFactors>& spaces, const Supported& supported,
                              int strength, int32_t world, uint64_t seed);

// The plainest row among the values that are taken: in a world of that size if there is one.
// problem: what is taken of the space, with a row.
CoveringRow PlainestRow(const CaseFactors& space, const CoveringProblem& problem,
                        const Taken& taken, int32_t world);

// The space that a case with one instance is of.
const char* SpaceOf(const Case& c);

// Whether a case has no value of a space that the engine does not take. Cases with several engines,
// and illegal ones, are answered by every engine: true.
bool Fits(const std::vector<CaseFactors>& spaces, const Supported& supported, const Case& c);

// Whether the case is a row of a space and nothing else, all of whose values are taken.
bool IsOfTaken(const std::vector<CaseFactors>& spaces, const Supported& supported, const Case& c);

// "pairs of strategies: 812 judged of 830 that the engine's values make, 2912 with all values".
// `judged`: cases that got a verdict.
std::vector<std::string> FittedCoverage(const std::vector<CaseFactors>& spaces,
                                        const Supported& supported, const std::vector<Case>& judged,
                                        int strength);

}  // namespace shardproof
