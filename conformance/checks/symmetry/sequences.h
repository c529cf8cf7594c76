// sequences.h: which ranks issue what need not match, in a world of shapes?
//
// Exact where it says nothing: then all members of each communicator issue equal sequences of
// collectives, creations, destructions and registrations, members of uneven ones expect what is
// sent, and messages pair. Where something differs it names some of the ranks that show it; whether
// it is wrong the check of graphs says (a label that is left out differs, and is not).
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "conformance/checks/symmetry/compact_world.h"

namespace shardproof::symmetry {

struct Difference {
  std::string comm;
  std::vector<int32_t> ranks;  // in order, each once
  // One of them, and how many members that are not among them issue the same sequence.
  std::vector<std::pair<int32_t, size_t>> more = {};
};

// By communicator, in order; of a communicator whose sequences differ the ranks that issue each of
// them, and of uneven counts and messages the first pair.
std::vector<Difference> Differences(const CompactWorld& world);

}  // namespace shardproof::symmetry
