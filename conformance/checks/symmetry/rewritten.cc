#include "conformance/checks/symmetry/rewritten.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "conformance/abi/shardproof.h"
#include "conformance/common/at.h"

namespace shardproof::symmetry {
namespace {

bool IsMessage(const Event& event) {
  return event.collective == SPF_SEND || event.collective == SPF_RECV;
}

// The group of a rewritten trace, and what becomes of its members.
struct NewGroup {
  std::string comm;
  std::vector<int32_t> members;       // world ranks
  std::vector<int32_t> index_of_old;  // by place in the old group: in members, or -1
};

// One rank's trace with other groups.
class Rewriting {
 public:
  // one_of_each: members of one colour are one.
  Rewriting(Trace trace, std::vector<NewGroup> groups, bool one_of_each)
      : trace_(std::move(trace)), groups_(std::move(groups)), one_of_each_(one_of_each) {}

  Trace Run() {
    for (size_t g = 0; g < groups_.size(); ++g) {
      trace_.groups[g].comm = groups_[g].comm;
      trace_.groups[g].world_ranks = groups_[g].members;
    }
    for (Event& event : trace_.events) {
      if (event.kind == EventKind::kCollective && event.group >= 0) Collective(event);
      if (event.kind == EventKind::kGroupCreate) Create(event);
    }
    return std::move(trace_);
  }

 private:
  const NewGroup& Of(int32_t group) const { return At(groups_, group); }
  int32_t NewIndex(const NewGroup& group, int32_t old) const {
    return old >= 0 && old < Length(group.index_of_old) ? At(group.index_of_old, old) : -1;
  }

  void Collective(Event& event) {
    const NewGroup& group = Of(event.group);
    if (IsMessage(event)) {
      const int32_t peer = NewIndex(group, event.peer);
      if (peer < 0) return LeaveOut(event);
      event.peer = peer;
      return;
    }
    if (one_of_each_) {
      // Counts and roots were compared; here they would be of members who are not here.
      if (event.peer >= 0) event.peer = 0;
      event.send_counts = event.recv_counts = Slice{};
      return;
    }
    // A root who is not here is the same one for all who are.
    if (event.peer >= 0) event.peer = std::max(0, NewIndex(group, event.peer));
    KeepCounts(group, event.send_counts);
    KeepCounts(group, event.recv_counts);
  }

  // What is left of it is that something was issued there.
  static void LeaveOut(Event& event) {
    event.kind = event.stream >= 0 ? EventKind::kLaunch : EventKind::kMark;
    event.group = event.peer = event.request = -1;
    event.collective = 0;
    event.id = 0;
    event.ranges = event.send_counts = event.recv_counts = Slice{};
  }

  void KeepCounts(const NewGroup& group, Slice& counts) {
    if (counts.size() != group.index_of_old.size()) return;
    std::vector<int64_t> kept(group.members.size(), 0);
    for (size_t old = 0; old < group.index_of_old.size(); ++old) {
      if (group.index_of_old[old] >= 0)
        At(kept, group.index_of_old[old]) = trace_.numbers[counts.begin + old];
    }
    counts = Append(kept);
  }

  void Create(Event& event) {
    if (event.ranks.empty() || event.parent < 0) return;
    const NewGroup& parent = Of(event.parent);
    std::vector<int64_t> list;
    if (one_of_each_ &&
        event.group >= 0) {  // members of one colour are one: the list is who is left
      for (const int32_t member : Of(event.group).members) {
        const auto at = std::find(parent.members.begin(), parent.members.end(), member);
        if (at != parent.members.end()) list.push_back(at - parent.members.begin());
      }
    } else {
      for (uint32_t i = event.ranks.begin; i < event.ranks.end; ++i) {
        const int32_t index = NewIndex(parent, static_cast<int32_t>(trace_.numbers[i]));
        if (index >= 0 && std::find(list.begin(), list.end(), index) == list.end())
          list.push_back(index);
      }
    }
    event.ranks = Append(list);
  }

  Slice Append(const std::vector<int64_t>& numbers) {
    const auto begin = static_cast<uint32_t>(trace_.numbers.size());
    trace_.numbers.insert(trace_.numbers.end(), numbers.begin(), numbers.end());
    return {begin, static_cast<uint32_t>(trace_.numbers.size())};
  }

  Trace trace_;
  const std::vector<NewGroup> groups_;
  const bool one_of_each_;
};

// A world in which nobody does anything.
std::vector<Trace> Silent(const CompactWorld& world) {
  Trace silent;
  silent.world = world.world();
  silent.provides = Provides::All();
  if (!world.shapes.empty()) silent.case_id = world.shapes.front().trace.case_id;
  std::vector<Trace> traces(world.ranks.size(), silent);
  for (size_t rank = 0; rank < traces.size(); ++rank)
    traces[rank].rank = static_cast<int32_t>(rank);
  return traces;
}

// By communicator colour: a member for each colour of rank in it. Empty: two members of one colour
// have different numbers for the group, so no trace can stand for both.
std::vector<std::vector<int32_t>> QuotientMembers(const CompactWorld& world,
                                                  const Partition& partition,
                                                  const std::vector<int32_t>& representatives) {
  std::vector<std::vector<int32_t>> members(static_cast<size_t>(partition.comms));
  std::map<std::pair<int32_t, int32_t>, int32_t> seen;  // (communicator, rank) colours: group
  for (const int32_t rank : representatives) {
    const std::vector<int32_t>& comms = At(world.ranks, rank).comms;
    for (size_t g = 0; g < comms.size(); ++g) {
      const auto group = static_cast<int32_t>(g);
      if (At(world.ShapeOf(rank).first_of, group) != group) continue;
      const int32_t colour = At(partition.of_comm, comms[g]);
      const auto [at, added] = seen.try_emplace({colour, At(partition.of_rank, rank)}, group);
      if (!added && at->second != group) return {};
      if (added) At(members, colour).push_back(rank);
    }
  }
  for (std::vector<int32_t>& list : members) std::sort(list.begin(), list.end());
  return members;
}

}  // namespace

std::vector<Trace> Among(const CompactWorld& world, const std::vector<int32_t>& ranks) {
  std::vector<Trace> traces = Silent(world);
  const std::set<int32_t> here(ranks.begin(), ranks.end());
  for (const int32_t rank : here) {
    std::vector<NewGroup> groups;
    for (const int32_t id : At(world.ranks, rank).comms) {
      const Comm& comm = At(world.comms, id);
      NewGroup& group = groups.emplace_back(NewGroup{comm.key, {}, {}});
      for (const int32_t member : comm.members) {
        const bool stays = here.contains(member);
        group.index_of_old.push_back(stays ? Length(group.members) : -1);
        if (stays) group.members.push_back(member);
      }
    }
    At(traces, rank) = Rewriting(world.Expand(rank), std::move(groups), false).Run();
  }
  return traces;
}

Quotient QuotientOf(const CompactWorld& world, const Partition& partition) {
  const std::vector<int32_t> representatives = Representatives(partition);
  const auto members = QuotientMembers(world, partition, representatives);
  if (members.empty() && partition.comms > 0)
    return {{}, "two ranks of one colour give a communicator different numbers"};
  Quotient quotient{Silent(world), ""};
  for (const int32_t rank : representatives) {
    std::vector<NewGroup> groups;
    for (const int32_t id : At(world.ranks, rank).comms) {
      const int32_t colour = At(partition.of_comm, id);
      NewGroup& group =
          groups.emplace_back(NewGroup{"#" + std::to_string(colour), At(members, colour), {}});
      for (const int32_t member : At(world.comms, id).members) {
        const int32_t stands = At(representatives, At(partition.of_rank, member));
        const auto at = std::lower_bound(group.members.begin(), group.members.end(), stands);
        const bool there = at != group.members.end() && *at == stands;
        group.index_of_old.push_back(there ? static_cast<int32_t>(at - group.members.begin()) : -1);
      }
    }
    At(quotient.traces, rank) = Rewriting(world.Expand(rank), std::move(groups), true).Run();
  }
  return quotient;
}

Trace AsFirstRank(const Shape& shape) {
  Trace trace = shape.trace;
  const int32_t rank = std::exchange(trace.rank, 0);
  for (GroupInfo& group : trace.groups) {
    for (int32_t& member : group.world_ranks) {
      member = member == rank ? 0 : member == 0 ? rank : member;
    }
  }
  return trace;
}

Trace Alone(const Shape& shape) {
  Trace trace = shape.trace;
  trace.rank = 0;
  trace.world = 1;
  for (size_t g = 0; g < trace.groups.size(); ++g) trace.groups[g].world_ranks = {0};
  for (Event& event : trace.events) {
    if (event.kind == EventKind::kGroupCreate) event.ranks = Slice{};
    if (event.kind != EventKind::kCollective) continue;
    event.collective = SPF_ALL_REDUCE;
    event.peer = -1;
    event.reduction = SPF_SUM;
    event.send_counts = event.recv_counts = Slice{};
  }
  return trace;
}

}  // namespace shardproof::symmetry
