// partition.h: which ranks, and which communicators, can stand for one another?
//
// A partition gives each rank and each communicator a colour such that, within a colour, all look
// the same from near: ranks have one shape and their groups lead to communicators of the same
// colours; communicators have members of the same kinds (a rank's colour, and its local number of
// the group). README.md proves what follows: the graph of what waits for what has a cycle if and
// only if that of the colours has one. Breaks() checks the conditions of that proof and nothing
// else, whoever made the partition.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/checks/symmetry/compact_world.h"

namespace shardproof::symmetry {

struct Partition {
  std::vector<int32_t> of_rank, of_comm;
  int32_t ranks = 0, comms = 0;  // numbers of colours
};

// The coarsest partition of that kind: begins with shapes, and splits what differs.
Partition Refine(const CompactWorld& world);

// Which condition the partition breaks, in words; empty: none.
std::string Breaks(const CompactWorld& world, const Partition& partition);

// By colour: its first rank.
std::vector<int32_t> Representatives(const Partition& partition);

// A group in which a shape sends or receives messages, and with which member of it.
struct Peer {
  int32_t group = -1, peer = -1;
  auto operator<=>(const Peer&) const = default;
};
// Each once, in order.
std::vector<Peer> PeersOf(const Shape& shape);

}  // namespace shardproof::symmetry
