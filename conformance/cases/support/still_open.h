// still_open.h: what of that which an engine takes did no judged case ask?
//
// A case of a profile combines values; where the engine declines a combination, none of the case's
// values was judged there. Each such value is asked again in the plainest case with it, and each
// such pair too: what is declined then is declined by itself.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/cases/support/supported.h"

namespace shardproof {

// By space: rows that the engine is known to take (learn.h), the plainest first; may be empty.
using TakenRows = std::map<std::string, std::vector<CoveringRow>>;

struct OpenValue {
  std::string space, factor, value;
  Case with_it;
};
// In the order of spaces, factors and values. judged: cases that got a verdict. world: as of
// PlainestRow().
std::vector<OpenValue> OpenValues(const std::vector<CaseFactors>& spaces,
                                  const Supported& supported, const TakenRows& taken,
                                  const std::vector<Case>& judged, int32_t world, uint64_t seed);

// Plain cases, one after the other with combinations of so many values that are in no judged case
// and in no earlier of them; at most so many.
std::vector<Case> OpenCombinations(const std::vector<CaseFactors>& spaces,
                                   const Supported& supported, const TakenRows& taken,
                                   const std::vector<Case>& judged, int strength, int32_t world,
                                   uint64_t seed, size_t most);

}  // namespace shardproof
