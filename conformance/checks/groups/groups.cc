#include "conformance/checks/groups/groups.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "conformance/checks/base/carried.h"
#include "conformance/checks/groups/group_structure.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

const std::set<std::string_view> kDenseNames{"dp_cp",       "dp",       "intra_dp_cp",
                                             "inter_dp_cp", "dp_cp_ag", "dp_cp_reshard"};
const std::set<std::string_view> kExpertNames{"expt_dp", "intra_expt_dp", "inter_expt_dp",
                                              "expt_dp_ag"};

// What one rank's collectives of one instance carried on each communicator.
struct Traffic {
  struct Of {
    std::set<std::string> reduced_on[2], gathered_on[2];  // by expert
    std::set<std::vector<int32_t>> reduced_over[2];
  };
  std::map<std::pair<int, int>, Of> by_life;  // of an instance
};

// Which creation of an instance an entry call belongs to. An engine that builds its own groups
// builds others each time; those that it is given stay.
int LifeOf(const InstanceFacts& facts, int32_t call) {
  if (!facts.spec().grid) return 0;
  const std::vector<ScriptCall>& calls = facts.calls();
  const size_t end = std::min(calls.size(), static_cast<size_t>(std::max(call, 0)) + 1);
  return static_cast<int>(std::count_if(calls.begin(),
                                        calls.begin() + static_cast<std::ptrdiff_t>(end),
                                        [](const ScriptCall& one) { return one.letter == 'c'; }));
}

// Ranks that share out dense parameters between a unit's forward and its backward.
bool IsPart(const InstanceFacts& facts, bool expert, int32_t rank,
            const std::vector<int32_t>& members) {
  const std::vector<int32_t>* part = facts.PartList(expert, rank);
  return part != nullptr && *part == members;
}

bool IsOwnList(const InstanceFacts& facts, bool expert, int32_t rank,
               const std::vector<int32_t>& members) {
  const std::vector<int32_t>* lists[] = {
      facts.InnerList(expert, rank), facts.OuterList(expert, rank), facts.FullList(expert, rank),
      facts.PartList(expert, rank)};
  return std::any_of(std::begin(lists), std::end(lists),
                     [&](const auto* list) { return list && *list == members; });
}

class Routing {
 public:
  Routing(const Analysis& a, CheckResult& result) : a_(a), sink_(result) {}

  void Judge(int32_t rank) {
    const std::vector<Carried>& all = CarriedBy(a_, rank);
    Traffic traffic;
    for (const Carried& carried : all) Note(rank, carried, traffic);
    for (const Carried& carried : all) JudgeOne(rank, carried, traffic);
  }

 private:
  const InstanceFacts& FactsOf(int32_t rank, const Carried& carried) const {
    return a_.Facts(At(a_.trace(rank).events, carried.event).instance);
  }

  std::pair<int, int> LifeAt(int32_t rank, const Carried& carried) const {
    const Event& event = At(a_.trace(rank).events, carried.event);
    return {event.instance, LifeOf(a_.Facts(event.instance), event.call)};
  }

  bool IsOuter(int32_t rank, const Carried& carried, bool expert) const {
    const auto* outer = FactsOf(rank, carried).OuterList(expert, rank);
    return outer != nullptr && outer->size() > 1 && *outer == carried.group->world_ranks;
  }

  void Note(int32_t rank, const Carried& carried, Traffic& traffic) const {
    const InstanceFacts& facts = FactsOf(rank, carried);
    Traffic::Of& of = traffic.by_life[LifeAt(rank, carried)];
    for (const Chunk& chunk : carried.grads) {
      const bool expert = facts.ByKey(chunk.content.param).expert;
      of.reduced_on[expert].insert(carried.comm);
      if (!IsOuter(rank, carried, expert))
        of.reduced_over[expert].insert(carried.group->world_ranks);
    }
    for (const Chunk& chunk : carried.params) {
      const bool expert = facts.ByKey(chunk.content.param).expert;
      if (!IsOuter(rank, carried, expert)) of.gathered_on[expert].insert(carried.comm);
    }
  }

  void JudgeOne(int32_t rank, const Carried& carried, const Traffic& traffic) {
    const InstanceFacts& facts = FactsOf(rank, carried);
    const Traffic::Of& of = traffic.by_life.at(LifeAt(rank, carried));
    std::set<bool> kinds;
    std::map<bool, std::string> example;
    for (const auto* chunks : {&carried.params, &carried.grads}) {
      for (const Chunk& chunk : *chunks) {
        const ParamFacts& param = facts.ByKey(chunk.content.param);
        kinds.insert(param.expert);
        example.try_emplace(param.expert, param.name);
      }
    }
    for (const bool expert : kinds) {
      JudgeKind(rank, carried, facts, expert, example[expert]);
      if (carried.gather) JudgeGather(rank, carried, facts, of, expert, example[expert]);
      if (carried.reduction && IsTwinName(carried.group->name)) {
        Report("PG-10", rank, carried, "a gradient reduction on a reduction group",
               carried.group->name,
               "the gradient of " + example[expert] + " is reduced on the all-gather twin " +
                   carried.group->name + ": reduce it on the group that the twin copies");
      }
    }
  }

  static bool IsReducingName(const std::string& name) {
    return !IsTwinName(name) && (kDenseNames.contains(name) || kExpertNames.contains(name));
  }
  static bool IsTwinName(const std::string& name) { return name.ends_with("_ag"); }

  void JudgeKind(int32_t rank, const Carried& carried, const InstanceFacts& facts, bool expert,
                 const std::string& name) {
    const std::vector<int32_t>& members = carried.group->world_ranks;
    const bool named = (expert ? kDenseNames : kExpertNames).contains(carried.group->name);
    const bool others =
        IsOwnList(facts, !expert, rank, members) && !IsOwnList(facts, expert, rank, members);
    if (!named && !others) return;
    Report("PG-11", rank, carried,
           std::string(expert ? "an expert" : "a dense") + " communicator, over " +
               ListText(*facts.FullList(expert, rank)),
           carried.group->name + " over " + ListText(members),
           name + (expert ? " is an expert parameter, but travels on a dense communicator"
                          : " is a dense parameter, but travels on an expert communicator"));
  }

  void JudgeGather(int32_t rank, const Carried& carried, const InstanceFacts& facts,
                   const Traffic::Of& of, bool expert, const std::string& name) {
    const std::set<std::string>& reduced_on = of.reduced_on[expert];
    const bool outer_sharded = facts.spec().outer_strategy == OuterStrategy::kOptim;
    // Only where outer ranks share out a shard do they gather its slices.
    if (outer_sharded && IsOuter(rank, carried, expert)) return;
    if (IsPart(facts, expert, rank, carried.group->world_ranks)) return;  // KN-11
    // Who only evaluates reduces nothing: then names say which communicator would.
    const bool shared = reduced_on.empty() ? IsReducingName(carried.group->name)
                                           : reduced_on.contains(carried.comm);
    if (facts.Twin(expert) && shared) {
      Report("PG-09", rank, carried, "the all-gather twin of " + carried.group->name,
             carried.group->name,
             "a twin is given, but " + name + " is gathered on " + carried.group->name +
                 ", which also reduces gradients: gather on the twin");
    }
    // Unused parameters reduce zeros, which leave no trace: judge only where the same members are
    // known to reduce.
    const bool known = of.reduced_over[expert].contains(carried.group->world_ranks);
    if (!facts.Twin(expert) && !shared && known) {
      Report(
          "PG-09", rank, carried, "the communicator that reduces " + name,
          carried.group->name + " (" + carried.comm + ")",
          "no twin is given, but " + name + " is gathered on a communicator that reduces nothing");
    }
    const auto* want = facts.InnerList(expert, rank);
    if (!known && (want == nullptr || *want != carried.group->world_ranks)) {
      Report(facts.Twin(expert) ? "PG-06" : "PG-18", rank, carried,
             want == nullptr ? "" : ListText(*want), ListText(carried.group->world_ranks),
             name +
                 " is gathered over other ranks, or in another order, than its gradient is reduced "
                 "over");
    }
  }

  void Report(const char* requirement, int32_t rank, const Carried& carried, std::string expected,
              std::string seen, std::string message) {
    sink_.Add(a_.At(requirement, rank, carried.event), std::move(expected), std::move(seen),
              std::move(message));
  }

  const Analysis& a_;
  FindingSink sink_;
};

void JudgeOwnership(const Analysis& a, CheckResult& result) {
  FindingSink sink(result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) {
    const Trace& trace = a.trace(rank);
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      if (event.kind != EventKind::kCollective || event.group < 0) continue;
      const GroupInfo& group = At(trace.groups, event.group);
      if (group.instance != event.instance) {
        Finding finding = a.At("PG-14", rank, static_cast<int64_t>(i));
        finding.expected = "a group of engine instance " + std::to_string(event.instance);
        finding.seen = group.name + " of engine instance " + std::to_string(group.instance);
        finding.message =
            "a collective runs on another instance's communicator: keep no group between engines";
        sink.Add(std::move(finding));
      }
      if (!a.has_case() || a.Facts(event.instance).InGrid(trace.rank)) continue;
      Finding finding = a.At("PG-15", rank, static_cast<int64_t>(i));
      finding.expected = "no collective";
      finding.seen = "a collective on " + group.name;
      finding.message = "the rank is outside the instance's grid, but takes part in a collective";
      sink.Add(std::move(finding));
    }
  }
  Judge(result, {"PG-14"});
}

}  // namespace

CheckResult CheckGroups(const Analysis& a) {
  CheckResult result;
  if (!a.legal()) return result;
  const std::initializer_list<const char*> kRouting = {"PG-09", "PG-10", "PG-11", "PG-18"};
  for (const Trace& trace : a.traces()) {
    if (trace.provides.groups && trace.provides.collectives) continue;
    const std::string why =
        "rank " + std::to_string(trace.rank) + "'s trace has no groups or collectives";
    CannotJudge(result, {"PG-14"}, why);
    if (!a.has_case()) return result;
    CannotJudge(
        result,
        {"PG-01", "PG-02", "PG-03", "PG-04", "PG-05", "PG-06", "PG-07", "PG-13", "PG-15", "PG-17"},
        why);
    CannotJudge(result, kRouting, why);
    return result;
  }
  JudgeOwnership(a, result);
  if (!a.has_case()) {
    NeedsCase(a, result, {"PG-02", "PG-15"});
    NeedsCase(a, result, kRouting);
    return result;
  }
  Judge(result, {"PG-15"});
  result.Merge(CheckGroupStructure(a));
  if (!a.has_flow()) {
    NeedsCase(a, result, kRouting);
    return result;
  }
  Judge(result, kRouting);
  Routing routing(a, result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) routing.Judge(rank);
  return result;
}

}  // namespace shardproof
