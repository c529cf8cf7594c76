// learn.h: which values of which knobs does this engine take? Found out by asking it.
//
// Each value is asked once in a case that differs from one that the engine takes in as few knobs as
// can be, so that an answer is about that value. What it takes alone it may still decline in
// company: cases of a profile may end unsupported.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "conformance/cases/support/supported.h"

namespace shardproof {

// Answers for each case, in order, whether the engine takes it: some rank answers neither
// UNSUPPORTED nor REJECTED. An engine that crashes takes the case: it is to be judged.
using TakesCases = std::function<std::vector<bool>(const std::vector<Case>& cases)>;

struct Learnt {
  Supported supported;  // spaces of which the engine takes any case
  int asked = 0;        // cases
  // By space: the row that it takes from which the others were reached.
  std::map<std::string, CoveringRow> bases;
};

// Cases that are asked have the script of their row if it is not the usual one, else an empty one:
// create and destroy. world: the size of worlds that is asked first.
Learnt LearnSupport(const std::vector<CaseFactors>& spaces, int32_t world, const TakesCases& takes);

}  // namespace shardproof
