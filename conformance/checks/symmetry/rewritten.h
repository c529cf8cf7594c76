// rewritten.h: what do the traces of some ranks look like in a world of fewer members?
//
// The check of graphs takes the traces of a whole world. These worlds have as many ranks as the
// real one, so that words name real ranks, but only the given ranks do anything.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/checks/symmetry/compact_world.h"
#include "conformance/checks/symmetry/partition.h"

namespace shardproof::symmetry {

// Everything that these ranks do with each other: groups without the others, messages to others
// left out, counts of others too.
std::vector<Trace> Among(const CompactWorld& world, const std::vector<int32_t>& ranks);

struct Quotient {
  std::vector<Trace> traces;
  std::string why;  // not empty: the partition has no such world, and traces are empty
};
// A rank for each colour, a communicator for each colour. Without counts of members and roots: that
// operations match is not asked of it.
Quotient QuotientOf(const CompactWorld& world, const Partition& partition);

// What one rank of a shape does, alone: its communicators have no other member, so that all order
// is its own.
Trace Alone(const Shape& shape);
// The same with groups as they are, as rank 0: what looks at one rank's calls finds all their
// sizes.
Trace AsFirstRank(const Shape& shape);

}  // namespace shardproof::symmetry
