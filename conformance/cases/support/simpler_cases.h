// simpler_cases.h: which cases ask a little less than this one?
#pragma once
#include <vector>

#include "conformance/cases/case.h"

namespace shardproof {

// Askable cases that are as legal, the shortest id first: with a token less in one leg, a letter
// less in a script, or fewer ranks.
std::vector<Case> SimplerCases(const Case& c);

}  // namespace shardproof
