#include "conformance/checks/groups/group_structure.h"

#include <algorithm>
#include <map>
#include <set>

#include "conformance/common/at.h"

namespace shardproof {

namespace {

using List = std::vector<int32_t>;

// A named group as one rank holds it.
struct Held {
  List members;
  std::string comm;
  int64_t event = -1;
  bool created = false;
};
// Family name -> rank -> group.
using Seen = std::map<std::string, std::map<int32_t, Held>>;

std::set<std::string> Axes(const std::string& family) {
  static const std::map<std::string, std::set<std::string>> kAxes{
      {"tp", {"tp"}}, {"cp", {"cp"}}, {"dp", {"dp"}}, {"dp_cp", {"dp", "cp"}}, {"pp", {"pp"}}};
  const auto at = kAxes.find(family);
  return at == kAxes.end() ? std::set<std::string>{} : at->second;
}

std::set<std::string> ExpertAxes(const std::string& family) {
  static const std::map<std::string, std::set<std::string>> kAxes{
      {"ep", {"ep"}}, {"expt_dp", {"dp"}}, {"expt_tp", {"tp"}}, {"pp", {"pp"}}};
  const auto at = kAxes.find(family);
  return at == kAxes.end() ? std::set<std::string>{} : at->second;
}

bool Disjoint(const std::set<std::string>& a, const std::set<std::string>& b) {
  return !a.empty() && !b.empty() &&
         std::none_of(a.begin(), a.end(), [&](const auto& x) { return b.contains(x); });
}

size_t Common(const List& a, const List& b) {
  return static_cast<size_t>(std::count_if(
      a.begin(), a.end(), [&](int32_t x) { return std::find(b.begin(), b.end(), x) != b.end(); }));
}

class Structure {
 public:
  Structure(const Analysis& a, int instance, CheckResult& result)
      : a_(a),
        facts_(a.Facts(size_t(instance))),
        instance_(instance),
        result_(result),
        sink_(result) {
    for (int32_t rank = 0; rank < a.ranks(); ++rank) Collect(rank);
  }

  void JudgeAll() {
    for (const auto& [name, held] : seen_) {
      JudgeFormula(name, held);
      JudgePartition(name, held);
    }
    JudgeMeetings();
    JudgeSizes();
    JudgeHybrid();
    JudgeTwins();
    JudgeCreationOrder();
  }

 private:
  void Collect(int32_t rank) {
    const Trace& trace = a_.trace(rank);
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      const bool ask = event.kind == EventKind::kGroupAsk,
                 create = event.kind == EventKind::kGroupCreate;
      if (event.instance != instance_ || (!ask && !create)) continue;
      const std::string name(trace.Text(event.text));
      const auto index = static_cast<int64_t>(i);
      if (create && event.parent >= 0) {
        Creations& creations = creations_[At(trace.groups, event.parent).comm];
        creations.parent = At(trace.groups, event.parent).world_ranks;
        creations.by_rank[rank].push_back({name, index});
      }
      if (event.group < 0 || name == "world") continue;
      const GroupInfo& group = At(trace.groups, event.group);
      if (create && !facts_.InGrid(trace.rank)) {
        Report("PG-15", rank, index, "no group", name + " " + ListText(group.world_ranks),
               "the rank is outside the grid's span, but joins a group");
      }
      Held held{group.world_ranks, group.comm, index, create};
      const auto [at, added] = seen_[name].try_emplace(rank, held);
      if (added || !create) continue;
      if (at->second.created && at->second.members == held.members &&
          CallOf(rank, at->second.event) == CallOf(rank, index)) {
        Report("PG-17", rank, index, "one communicator named " + name,
               "a second one with the same members", "the group is created twice: keep the first");
      }
      at->second = held;  // created again after a destroy
    }
  }

  int32_t CallOf(int32_t rank, int64_t event) const {
    return At(a_.trace(rank).events, event).call;
  }

  void JudgeFormula(const std::string& name, const std::map<int32_t, Held>& held) {
    const bool family = std::any_of(facts_.families().begin(), facts_.families().end(),
                                    [&](const GroupFamily& one) { return one.name == name; });
    if (!family) return;
    Judge(result_, {"PG-02"});
    for (const auto& [rank, group] : held) {
      const List* want = facts_.List(name, rank);
      if (want != nullptr && *want == group.members) continue;
      const bool twin = name.ends_with("_ag");
      Report(twin ? "PG-06" : "PG-02", rank, group.event,
             want == nullptr ? "no group" : ListText(*want), ListText(group.members),
             "group " + name + " has other members, or another order, than axis order " +
                 facts_.spec().order + " and offset " + std::to_string(facts_.spec().offset) +
                 " give");
    }
  }

  void JudgePartition(const std::string& name, const std::map<int32_t, Held>& held) {
    std::vector<int32_t> in_grid;
    for (int32_t rank = 0; rank < a_.ranks(); ++rank) {
      if (facts_.InGrid(rank)) in_grid.push_back(rank);
    }
    const bool known = !Axes(name).empty() || !ExpertAxes(name).empty() || name.ends_with("_ag") ||
                       name.ends_with("_reshard") || name.starts_with("intra_") ||
                       name.starts_with("inter_");
    const auto has = [&](int32_t rank) { return held.contains(rank); };
    if (!known || in_grid.empty() || !std::all_of(in_grid.begin(), in_grid.end(), has)) return;
    Judge(result_, {"PG-01"});
    const size_t size = held.at(in_grid.front()).members.size();
    for (const int32_t rank : in_grid) {
      const Held& group = held.at(rank);
      const bool equal_size = group.members.size() == size;
      const bool agreed = std::all_of(
          group.members.begin(), group.members.end(),
          [&](int32_t other) { return has(other) && held.at(other).members == group.members; });
      const bool inside =
          std::find(group.members.begin(), group.members.end(), rank) != group.members.end();
      if (equal_size && agreed && inside) continue;
      Report("PG-01", rank, group.event,
             "groups of " + std::to_string(size) + " ranks that partition the grid",
             ListText(group.members),
             "group " + name +
                 " does not partition the ranks: its members do not all hold the same list");
    }
  }

  void JudgeMeetings() {
    for (auto first = seen_.begin(); first != seen_.end(); ++first) {
      for (auto second = std::next(first); second != seen_.end(); ++second) {
        const bool dense = Disjoint(Axes(first->first), Axes(second->first));
        const bool expert = Disjoint(ExpertAxes(first->first), ExpertAxes(second->first));
        if (!dense && !expert) continue;
        Judge(result_, {"PG-04"});
        for (const auto& [rank, group] : first->second) {
          const auto other = second->second.find(rank);
          if (other == second->second.end() || Common(group.members, other->second.members) <= 1)
            continue;
          Report("PG-04", rank, group.event, "at most one common rank",
                 ListText(group.members) + " and " + ListText(other->second.members),
                 first->first + " and " + second->first +
                     " are over disjoint axes, but share several ranks");
        }
      }
    }
  }

  size_t SizeOf(const std::string& name, int32_t rank) const {
    const auto family = seen_.find(name);
    if (family == seen_.end() || !family->second.contains(rank)) return 0;
    return family->second.at(rank).members.size();
  }

  void JudgeSizes() {
    for (int32_t rank = 0; rank < a_.ranks(); ++rank) {
      const size_t dense = SizeOf("dp_cp", rank) * SizeOf("tp", rank);
      const size_t expert = SizeOf("expt_dp", rank) * SizeOf("ep", rank) * SizeOf("expt_tp", rank);
      if (dense == 0 || expert == 0) continue;
      Judge(result_, {"PG-03"});
      if (dense == expert) continue;
      Report("PG-03", rank, seen_.at("expt_dp").at(rank).event,
             std::to_string(dense) + " ranks per pipeline stage", std::to_string(expert),
             "the expert grid has another number of ranks than the dense grid");
    }
  }

  void JudgeHybrid() {
    for (const char* kind : {"dp_cp", "expt_dp"}) {
      const auto inner = seen_.find("intra_" + std::string(kind)),
                 outer = seen_.find("inter_" + std::string(kind));
      if (inner == seen_.end() || outer == seen_.end()) continue;
      Judge(result_, {"PG-05"});
      for (const auto& [rank, group] : outer->second) {
        const List* full = facts_.List(kind, rank);
        for (const int32_t other : group.members) {
          const auto chunk = inner->second.find(other);
          const bool once =
              chunk == inner->second.end() || Common(group.members, chunk->second.members) == 1;
          const bool within = full != nullptr && (chunk == inner->second.end() ||
                                                  Common(*full, chunk->second.members) ==
                                                      chunk->second.members.size());
          if (once && within) continue;
          Report("PG-05", rank, group.event, "one rank of each inner group of " + std::string(kind),
                 ListText(group.members),
                 "the outer group does not meet each inner group in exactly one rank");
        }
      }
    }
  }

  void JudgeTwins() {
    Judge(result_, {"PG-07"});
    for (const auto& [name, held] : seen_) {
      if (!name.ends_with("_ag")) continue;
      const bool expert = name.starts_with("expt");
      for (const auto& [rank, group] : held) {
        if (!HasTwin(facts_.spec(), expert) && group.created) {
          Report("PG-07", rank, group.event, "no twin", name,
                 std::string("the case asks for no all-gather twin") +
                     (HasTwin(facts_.spec(), !expert) ? " of these parameters" : "") +
                     ", but one is created");
        }
        Judge(result_, {"PG-06"});
        const std::string base = name.substr(0, name.size() - 3);
        for (const std::string& reducing : {base, "intra_" + base}) {
          const auto family = seen_.find(reducing);
          if (family == seen_.end() || !family->second.contains(rank)) continue;
          if (family->second.at(rank).comm != group.comm) continue;
          Report("PG-06", rank, group.event, "a communicator of its own",
                 "the communicator of " + reducing,
                 "the twin is the reducing group itself: create a second communicator");
        }
        const List* want = facts_.InnerList(expert, rank);
        if (facts_.Twin(expert) && want != nullptr && *want != group.members &&
            !facts_.List(name, rank)) {
          Report(
              "PG-06", rank, group.event, ListText(*want), ListText(group.members),
              "the twin's ordered members are not those of the group that reduces the same buffer");
        }
      }
    }
  }

  struct Creations {
    List parent;
    std::map<int32_t, std::vector<std::pair<std::string, int64_t>>> by_rank;  // name, event
  };

  void JudgeCreationOrder() {
    for (const auto& [comm, creations] : creations_) {
      Judge(result_, {"PG-13"});
      const auto& [first, expected] = *creations.by_rank.begin();
      for (const int32_t rank : creations.parent) {
        const auto at = creations.by_rank.find(rank);
        if (at != creations.by_rank.end()) {
          CompareCreations(rank, at->second, first, expected);
        } else if (a_.ended_well() && rank < a_.ranks() && !a_.trace(rank).events.empty()) {
          Report("PG-13", rank, 0, std::to_string(expected.size()) + " creations", "none",
                 "the rank creates no group although others do: every rank creates every group, "
                 "members or not");
        }
      }
    }
  }

  void CompareCreations(int32_t rank, const std::vector<std::pair<std::string, int64_t>>& created,
                        int32_t first,
                        const std::vector<std::pair<std::string, int64_t>>& expected) {
    for (size_t i = 0; i < std::max(expected.size(), created.size()); ++i) {
      const bool here = i < created.size(), there = i < expected.size();
      if (here && there && created[i].first == expected[i].first) continue;
      if (!a_.ended_well() && !(here && there)) return;  // cut off by the end of the run
      Report("PG-13", rank, here ? created[i].second : created.back().second,
             there ? expected[i].first + ", as on rank " + std::to_string(first) : "nothing more",
             here ? created[i].first : "nothing more",
             "group creation number " + std::to_string(i) +
                 " differs between ranks: every rank creates every group, in one order, members or "
                 "not");
      return;
    }
  }

  void Report(const char* requirement, int32_t rank, int64_t event, std::string expected,
              std::string seen, std::string message) {
    sink_.Add(a_.At(requirement, rank, event), std::move(expected), std::move(seen),
              std::move(message));
  }

  const Analysis& a_;
  const InstanceFacts& facts_;
  const int instance_;
  CheckResult& result_;
  FindingSink sink_;
  Seen seen_;
  std::map<std::string, Creations> creations_;  // by parent communicator
};

}  // namespace

CheckResult CheckGroupStructure(const Analysis& a) {
  CheckResult result;
  for (size_t i = 0; i < a.n_instances(); ++i) Structure(a, static_cast<int>(i), result).JudgeAll();
  if (!result.judged.empty()) Judge(result, {"PG-17"});
  return result;
}

}  // namespace shardproof
