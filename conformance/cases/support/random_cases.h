// random_cases.h: which legal case does a seed draw, and which simpler ones are like a case?
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases/support/supported.h"

namespace shardproof {

// A space of what an engine takes, with the plainest case in it.
struct DrawFrom {
  CaseFactors space;
  ValueMask mask;
  CoveringProblem taken;
  CoveringRow plainest;
};
// Spaces of which the engine takes anything. world: as of PlainestRow().
std::vector<DrawFrom> WhatToDrawFrom(const std::vector<CaseFactors>& spaces,
                                     const Supported& supported, int32_t world);
// An engine that takes everything.
Supported AllOf(const std::vector<CaseFactors>& spaces);

// A case as it was drawn.
struct DrawnCase {
  const DrawFrom* from = nullptr;
  CoveringRow row;
  std::string script;  // of entry calls; empty: that of the row
  uint64_t seed = 1;   // of the data
};
// The derived case.
Case MakeCase(const DrawnCase& drawn);

// Seeds walk over the spaces in turn; the row, and the data that is trained on, follow from the
// seed alone. Every second round the script is drawn too, of the entry calls that scripts of the
// space make: three to six, each a train step with probability 1/2 if the engine trains, any order
// that makes sense. REQUIRES: `from`
// is not empty.
DrawnCase Draw(const std::vector<DrawFrom>& from, uint64_t seed);

// Cases with fewer features, those that lack most first: features are set back in pieces of half of
// them, a quarter, ..., one; a script loses an entry call; data are of seed 1. Distinct, and none
// of them is `drawn`.
std::vector<DrawnCase> Simpler(const DrawnCase& drawn);

}  // namespace shardproof
