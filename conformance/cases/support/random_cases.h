// random_cases.h: which legal case does a seed draw, and which simpler ones are like a case?
#pragma once
#include <cstdint>
#include <functional>
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
  std::function<bool(const Case&)> fits;  // it has no value, of any space, that is not taken
};
// Spaces of which the engine takes anything. world: as of PlainestRow().
std::vector<DrawFrom> WhatToDrawFrom(const std::vector<CaseFactors>& spaces,
                                     const Supported& supported, int32_t world);
// An engine that takes everything.
Supported AllOf(const std::vector<CaseFactors>& spaces);

// A value of a space: of a factor, or of one of its values, that the space of a case lacks.
struct ValueBesides {
  const DrawFrom* from = nullptr;
  int factor = 0, value = 0;
};

// A case as it was drawn.
struct DrawnCase {
  const DrawFrom* from = nullptr;
  CoveringRow row;
  std::vector<ValueBesides> besides = {};  // as far as the case is legal with them
  std::string script;                      // of entry calls; empty: that of the row
  uint64_t seed = 1;                       // of the data
  bool nan_loss = false;                   // as far as a step is skipped for it
};
// The derived case.
Case MakeCase(const DrawnCase& drawn);

// Seeds walk over the spaces in turn; the row, and the data that is trained on, follow from the
// seed alone. Every second round the script is drawn too, of the entry calls that scripts of the
// space make: three to six, each a train step with probability 1/2 if the engine trains, any order
// that makes sense. Of four rounds the last two add up to two values that other spaces have and its
// own does not, where the case is legal with them and remains one of its own space: no covering
// array has those together. Of half of the seeds a loss is no number (`nanloss`), where a step is
// to be skipped for it. REQUIRES: `from` is not empty.
DrawnCase Draw(const std::vector<DrawFrom>& from, uint64_t seed);

// Cases with fewer features, those that lack most first: `nanloss` is left out; values of other
// spaces, all and one by one; features are set back in pieces of half of them, a quarter, ..., one;
// a script loses an entry call; data are of seed 1. Distinct, and none of them is `drawn`.
std::vector<DrawnCase> Simpler(const DrawnCase& drawn);

}  // namespace shardproof
