#include "conformance/checks/symmetry/sequences.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "conformance/abi/shardproof.h"
#include "conformance/common/at.h"

namespace shardproof::symmetry {
namespace {

constexpr size_t kMostRanks = 16;  // of one difference

void Put(std::string& text, int64_t number) { text += std::to_string(number) + ' '; }

// What a shape does on one of its groups.
struct Issued {
  std::string sequence;                     // all that all members do alike
  std::vector<Slice> sent, expected;        // of uneven all-to-alls
  std::map<int32_t, std::string> to, from;  // messages, by peer
  std::vector<int32_t> roots;               // distinct
};

using IssuedByGroup = std::vector<Issued>;

void AddCollective(const Trace& trace, const Event& event, Issued& issued) {
  if (event.collective == SPF_SEND || event.collective == SPF_RECV) {
    std::string& text =
        event.collective == SPF_SEND ? issued.to[event.peer] : issued.from[event.peer];
    for (const int64_t field :
         {int64_t{event.dtype}, event.count, int64_t{event.purpose}, int64_t{event.module}})
      Put(text, field);
    return;
  }
  std::string& text = issued.sequence;
  text += 'o';
  const bool uneven = event.collective == SPF_ALL_TO_ALL_V;
  for (const int64_t field :
       {int64_t{event.collective}, int64_t{event.dtype}, int64_t{event.reduction},
        uneven ? 0 : event.count, int64_t{event.peer}, int64_t{event.purpose},
        int64_t{event.module}, int64_t{event.stream < 0}})
    Put(text, field);
  if (event.peer >= 0) issued.roots.push_back(event.peer);
  if (uneven) {
    issued.sent.push_back(event.send_counts);
    issued.expected.push_back(event.recv_counts);
  } else {
    for (uint32_t i = event.recv_counts.begin; i < event.recv_counts.end; ++i)
      Put(text, trace.numbers[i]);
  }
}

IssuedByGroup IssuedBy(const Shape& shape) {
  IssuedByGroup issued(shape.trace.groups.size());
  const auto of = [&](int32_t group) -> Issued& { return At(issued, At(shape.first_of, group)); };
  for (const Event& event : shape.trace.events) {
    switch (event.kind) {
      case EventKind::kCollective:
        if (event.group >= 0) AddCollective(shape.trace, event, of(event.group));
        break;
      case EventKind::kGroupCreate:
        if (event.parent >= 0)
          of(event.parent).sequence += "c" + std::string(shape.trace.Text(event.text)) + '\0';
        break;
      case EventKind::kGroupDestroy:
        if (event.group >= 0) of(event.group).sequence += 'd';
        break;
      case EventKind::kGroupRegister:
        if (event.group >= 0) of(event.group).sequence += 'r' + std::to_string(event.count) + ' ';
        break;
      default:
        break;
    }
  }
  // Who ended early is told apart from who issued all that it wanted to.
  if (shape.trace.end != TraceEnd::kComplete) {
    for (Issued& one : issued) one.sequence += '!';
  }
  return issued;
}

class Finder {
 public:
  explicit Finder(const CompactWorld& world) : world_(world) {
    for (const Shape& shape : world.shapes) issued_.push_back(IssuedBy(shape));
    std::map<std::string_view, int32_t> ids;
    for (const IssuedByGroup& shape : issued_) {
      for (const Issued& one : shape)
        sequence_.try_emplace(&one, ids.try_emplace(one.sequence, ids.size()).first->second);
    }
  }

  std::vector<Difference> Run() {
    MembersByComm();
    for (size_t comm = 0; comm < world_.comms.size(); ++comm) {
      if (Lists(comm)) continue;
      if (!Sequences(comm)) Counts(comm);
      Messages(comm);
    }
    return std::move(found_);
  }

 private:
  // A rank that says that it is a member.
  struct Member {
    int32_t rank = -1;
    const Issued* issued = nullptr;
  };

  void MembersByComm() {
    members_.resize(world_.comms.size());
    for (size_t id = 0; id < world_.comms.size(); ++id) by_key_[world_.comms[id].key].push_back(id);
    for (int32_t rank = 0; rank < world_.world(); ++rank) {
      const Names& place = At(world_.ranks, rank);
      for (size_t g = 0; g < place.comms.size(); ++g) {
        if (world_.ShapeOf(rank).first_of[g] == static_cast<int32_t>(g))
          At(members_, place.comms[g]).push_back({rank, &At(issued_, place.shape)[g]});
      }
    }
  }

  // Ranks give one communicator different members, or members do not know of it and others use it.
  bool Lists(size_t comm) {
    const Comm& one = world_.comms[comm];
    const std::vector<size_t>& same = by_key_.at(one.key);
    if (same.size() > 1) {
      std::set<int32_t> ranks;
      for (const size_t id : same) {
        for (const Member& member : members_[id]) {
          ranks.insert(member.rank);
          if (ranks.size() % kMostRanks == 0) break;
        }
      }
      if (same.front() == comm) Add(one.key, ranks);
      return true;
    }
    if (members_[comm].size() == one.members.size()) return false;
    const bool used =
        std::any_of(members_[comm].begin(), members_[comm].end(), [](const Member& m) {
          return !m.issued->sequence.empty() || !m.issued->to.empty() || !m.issued->from.empty();
        });
    if (!used) return false;
    std::set<int32_t> ranks, known;
    for (const Member& member : members_[comm]) known.insert(member.rank);
    for (const int32_t rank : one.members) {
      if (!known.contains(rank) && ranks.size() < kMostRanks) ranks.insert(rank);
    }
    size_t some = 0;
    for (auto at = known.begin(); at != known.end() && some < 2; ++at, ++some) ranks.insert(*at);
    Add(one.key, ranks);
    return true;
  }

  // Members whose sequences differ: of the most frequent one two, of each other one, and the roots.
  bool Sequences(size_t comm) {
    std::map<int32_t, std::vector<const Member*>> by_sequence;
    for (const Member& member : members_[comm])
      by_sequence[sequence_.at(member.issued)].push_back(&member);
    if (by_sequence.size() < 2) return false;
    const auto most = std::max_element(
        by_sequence.begin(), by_sequence.end(),
        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    std::set<int32_t> ranks;
    const bool few = members_[comm].size() <= kMostRanks;
    for (const auto& [id, list] : by_sequence) {
      const size_t wanted = few ? list.size() : id == most->first ? 3 : 1;
      for (size_t i = 0; i < std::min(wanted, list.size()); ++i) ranks.insert(list[i]->rank);
      for (const int32_t root : list.front()->issued->roots) {
        const std::vector<int32_t>& members = world_.comms[comm].members;
        if (root < Length(members)) ranks.insert(At(members, root));
      }
    }
    Add(world_.comms[comm].key, ranks);
    for (const auto& [id, list] : by_sequence) {
      const auto left = std::count_if(list.begin(), list.end(), [&](const Member* member) {
        return !ranks.contains(member->rank);
      });
      if (left > 0) found_.back().more.emplace_back(list.front()->rank, left);
    }
    return true;
  }

  const int64_t* Numbers(int32_t rank, const Slice& slice) const {
    return world_.ShapeOf(rank).trace.numbers.data() + slice.begin;
  }

  void Counts(size_t comm) {
    const std::vector<int32_t>& order = world_.comms[comm].members;
    const std::vector<Member>& members = members_[comm];
    if (members.empty() || members.front().issued->sent.empty()) return;
    std::map<int32_t, const Issued*> issued;
    for (const Member& member : members) issued[member.rank] = member.issued;
    std::vector<const Issued*> by_place;
    for (const int32_t rank : order)
      by_place.push_back(issued.count(rank) ? issued[rank] : nullptr);
    const size_t n = order.size(), operations = members.front().issued->sent.size();
    for (size_t k = 0; k < operations; ++k) {
      for (size_t i = 0; i < n; ++i) {
        if (by_place[i] == nullptr || by_place[i]->sent[k].size() != n) continue;
        const int64_t* sent = Numbers(order[i], by_place[i]->sent[k]);
        for (size_t j = 0; j < n; ++j) {
          if (by_place[j] == nullptr || by_place[j]->expected[k].size() != n) continue;
          if (sent[j] == Numbers(order[j], by_place[j]->expected[k])[i]) continue;
          return Add(world_.comms[comm].key, {order[i], order[j]});
        }
      }
    }
  }

  void Messages(size_t comm) {
    const std::vector<int32_t>& order = world_.comms[comm].members;
    std::map<int32_t, const Issued*> issued;
    for (const Member& member : members_[comm]) issued[member.rank] = member.issued;
    std::map<int32_t, int32_t> place;
    for (size_t i = 0; i < order.size(); ++i) place.emplace(order[i], static_cast<int32_t>(i));
    for (const auto& [rank, mine] : issued) {
      for (const bool sends : {true, false}) {
        for (const auto& [peer, text] : sends ? mine->to : mine->from) {
          const int32_t other = peer >= 0 && peer < Length(order) ? At(order, peer) : -1;
          const auto theirs = issued.find(other);
          const auto me = place.find(rank);
          if (me == place.end()) continue;
          const std::string* answer = nullptr;
          if (theirs != issued.end()) {
            const auto& lists = sends ? theirs->second->from : theirs->second->to;
            const auto at = lists.find(me->second);
            if (at != lists.end()) answer = &at->second;
          }
          if (answer != nullptr && *answer == text) continue;
          std::set<int32_t> ranks{rank};
          if (other >= 0) ranks.insert(other);
          return Add(world_.comms[comm].key, ranks);
        }
      }
    }
  }

  void Add(const std::string& comm, const std::set<int32_t>& ranks) {
    found_.push_back({comm, {ranks.begin(), ranks.end()}});
  }

  const CompactWorld& world_;
  std::vector<IssuedByGroup> issued_;  // by shape
  std::map<const Issued*, int32_t> sequence_;
  std::map<std::string, std::vector<size_t>> by_key_;
  std::vector<std::vector<Member>> members_;  // by communicator
  std::vector<Difference> found_;
};

}  // namespace

std::vector<Difference> Differences(const CompactWorld& world) { return Finder(world).Run(); }

}  // namespace shardproof::symmetry
