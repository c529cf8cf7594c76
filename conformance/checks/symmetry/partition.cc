#include "conformance/checks/symmetry/partition.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "conformance/abi/shardproof.h"
#include "conformance/common/at.h"

namespace shardproof::symmetry {
namespace {

using Key = std::vector<int64_t>;
// Of a member of a communicator: its colour, and its local number of the group.
using Kind = std::pair<int32_t, int32_t>;

// Numbers keys in the order in which they come.
class Numbering {
 public:
  int32_t Of(Key key) {
    return ids_.try_emplace(std::move(key), static_cast<int32_t>(ids_.size())).first->second;
  }
  int32_t size() const { return static_cast<int32_t>(ids_.size()); }

 private:
  std::map<Key, int32_t> ids_;
};

// By communicator: the kinds of its members, each once. A rank that lists a communicator under two
// numbers has the first.
std::vector<std::vector<Kind>> KindsOf(const CompactWorld& world,
                                       const std::vector<int32_t>& of_rank) {
  std::vector<std::vector<Kind>> kinds(world.comms.size());
  for (int32_t rank = 0; rank < world.world(); ++rank) {
    const std::vector<int32_t>& comms = At(world.ranks, rank).comms;
    for (size_t g = 0; g < comms.size(); ++g) {
      if (world.ShapeOf(rank).first_of[g] == static_cast<int32_t>(g))
        At(kinds, comms[g]).push_back({At(of_rank, rank), static_cast<int32_t>(g)});
    }
  }
  for (std::vector<Kind>& of_comm : kinds) {
    std::sort(of_comm.begin(), of_comm.end());
    of_comm.erase(std::unique(of_comm.begin(), of_comm.end()), of_comm.end());
  }
  return kinds;
}

int32_t RankOf(const CompactWorld& world, int32_t rank, const Peer& peer) {
  const std::vector<int32_t>& members = world.CommOf(rank, peer.group).members;
  return peer.peer >= 0 && peer.peer < Length(members) ? At(members, peer.peer) : -1;
}

int64_t IndexIn(const std::vector<int32_t>& members, int32_t rank) {
  return std::find(members.begin(), members.end(), rank) - members.begin();
}

// Where messages go, members are told apart by their names.
Key FirstKey(const CompactWorld& world, int32_t rank, const std::vector<Peer>& peers) {
  Key key{At(world.ranks, rank).shape};
  for (const Peer& peer : peers)
    key.push_back(IndexIn(world.CommOf(rank, peer.group).members, rank));
  return key;
}

std::vector<std::vector<Peer>> PeersByShape(const CompactWorld& world) {
  std::vector<std::vector<Peer>> peers;
  for (const Shape& shape : world.shapes) peers.push_back(PeersOf(shape));
  return peers;
}

Key KeyOf(const std::vector<Kind>& kinds) {
  Key key;
  for (const auto& [colour, group] : kinds) key.insert(key.end(), {colour, group});
  return key;
}

}  // namespace

std::vector<Peer> PeersOf(const Shape& shape) {
  std::set<Peer> peers;
  for (const Event& event : shape.trace.events) {
    const bool message = event.kind == EventKind::kCollective &&
                         (event.collective == SPF_SEND || event.collective == SPF_RECV);
    if (message && event.group >= 0) peers.insert({event.group, event.peer});
  }
  return {peers.begin(), peers.end()};
}

Partition Refine(const CompactWorld& world) {
  const std::vector<std::vector<Peer>> peers = PeersByShape(world);
  Partition now;
  Numbering first;
  for (int32_t rank = 0; rank < world.world(); ++rank)
    now.of_rank.push_back(first.Of(FirstKey(world, rank, At(peers, At(world.ranks, rank).shape))));
  now.ranks = first.size();
  for (;;) {
    Numbering comms, ranks;
    now.of_comm.clear();
    for (const std::vector<Kind>& kinds : KindsOf(world, now.of_rank))
      now.of_comm.push_back(comms.Of(KeyOf(kinds)));
    now.comms = comms.size();
    std::vector<int32_t> next;
    for (int32_t rank = 0; rank < world.world(); ++rank) {
      const Names& names = At(world.ranks, rank);
      Key key{At(now.of_rank, rank)};
      for (const int32_t comm : names.comms) key.push_back(At(now.of_comm, comm));
      for (const Peer& peer : At(peers, names.shape)) {
        const int32_t other = RankOf(world, rank, peer);
        key.push_back(other < 0 ? -1 : At(now.of_rank, other));
      }
      next.push_back(ranks.Of(std::move(key)));
    }
    if (ranks.size() == now.ranks) return now;
    now.of_rank = std::move(next);
    now.ranks = ranks.size();
  }
}

std::vector<int32_t> Representatives(const Partition& partition) {
  std::vector<int32_t> first(static_cast<size_t>(partition.ranks), -1);
  for (size_t rank = 0; rank < partition.of_rank.size(); ++rank) {
    int32_t& of_colour = At(first, partition.of_rank[rank]);
    if (of_colour < 0) of_colour = static_cast<int32_t>(rank);
  }
  return first;
}

std::string Breaks(const CompactWorld& world, const Partition& partition) {
  if (partition.of_rank.size() != world.ranks.size() ||
      partition.of_comm.size() != world.comms.size())
    return "not every rank and communicator has a colour";
  const std::vector<int32_t> first = Representatives(partition);
  for (int32_t rank = 0; rank < world.world(); ++rank) {
    const int32_t like = At(first, At(partition.of_rank, rank));
    const std::string pair =
        "ranks " + std::to_string(like) + " and " + std::to_string(rank) + " have one colour, but ";
    const Names &a = At(world.ranks, like), &b = At(world.ranks, rank);
    if (a.shape != b.shape) return pair + "their traces differ in more than names";
    for (size_t g = 0; g < b.comms.size(); ++g) {
      if (At(partition.of_comm, a.comms[g]) != At(partition.of_comm, b.comms[g]))
        return pair + "their groups " + std::to_string(g) + " do not";
    }
    for (const Peer& peer : PeersOf(world.ShapeOf(rank))) {
      const int32_t x = RankOf(world, like, peer), y = RankOf(world, rank, peer);
      if ((x < 0) != (y < 0) || (x >= 0 && At(partition.of_rank, x) != At(partition.of_rank, y)))
        return pair + "their messages go to ranks of two colours";
    }
  }
  const std::vector<std::vector<Kind>> kinds = KindsOf(world, partition.of_rank);
  std::map<int32_t, size_t> of_colour;
  for (size_t comm = 0; comm < kinds.size(); ++comm) {
    const auto [at, added] = of_colour.try_emplace(partition.of_comm[comm], comm);
    if (kinds[at->second] != kinds[comm])
      return "communicators " + world.comms[at->second].key + " and " + world.comms[comm].key +
             " have one colour, but members of other kinds";
  }
  return "";
}

}  // namespace shardproof::symmetry
