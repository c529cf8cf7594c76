#include "conformance/runner/many/judge_many.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "conformance/cases/grid.h"
#include "conformance/checks/base/facts.h"
#include "conformance/checks/base/one_row.h"
#include "conformance/checks/check_all.h"
#include "conformance/checks/graph/graph_checks.h"
#include "conformance/checks/robustness/left_behind.h"
#include "conformance/checks/robustness/robustness.h"
#include "conformance/checks/symmetry/rewritten.h"
#include "conformance/checks/symmetry/symmetry.h"
#include "conformance/common/at.h"
#include "conformance/report/verdict_rule.h"
#include "conformance/requirements/registry.h"

namespace shardproof {
namespace {

using symmetry::CompactWorld;

constexpr size_t kMostTold = 8;  // shapes whose findings are told

const std::set<std::string> kOfAllRanks = {"GE-01", "GE-02", "GE-03", "GE-04", "GE-08",
                                           "GE-09", "GE-10", "GE-15", "GE-16", "GE-17"};
// What one rank cannot show.
const std::set<std::string> kOfSeveralRanks = {"GE-24"};
// What every engine shows that trains on several ranks.
const std::set<std::string> kAlwaysShown = {"GE-01", "GE-03", "GE-04", "GE-05", "GE-06",
                                            "GE-11", "GE-18", "GE-21", "GE-23", "GE-24",
                                            "GE-25", "GE-26", "GE-27", "FS-33", "PG-02"};
const std::set<std::string> kRaces = {"GE-05", "GE-06", "GE-11"};

class ManyRanks {
 public:
  ManyRanks(const Case& c, const CompactWorld& world) : case_(c), world_(world) {
    first_.assign(world.shapes.size(), -1);
    count_.assign(world.shapes.size(), 0);
    for (int32_t rank = 0; rank < world.world(); ++rank) {
      const int32_t shape = At(world.ranks, rank).shape;
      if (At(first_, shape) < 0) At(first_, shape) = rank;
      ++At(count_, shape);
    }
  }

  CheckResult Run() {
    result_ = symmetry::CheckManyRanks(world_);
    for (size_t shape = 0; shape < world_.shapes.size(); ++shape) JudgeShape(shape);
    JudgeRaces();
    JudgeAnswers();
    JudgeMembers();
    if (result_.findings.empty()) RequireGoodEnds();
    RequireShown();
    LeaveTheRest();
    KeepOneRowEach(result_);
    return std::move(result_);
  }

 private:
  static CheckResult Of(const Trace& trace, const EngineOutcome& outcome) {
    return CheckAll({nullptr, {trace}, {outcome}, {}, {}});
  }

  static void LeaveOut(const std::set<std::string>& ids, CheckResult& result) {
    std::erase_if(result.findings, [&](const Finding& f) { return ids.contains(f.requirement); });
    std::erase_if(result.not_checkable,
                  [&](const NotCheckable& row) { return ids.contains(row.requirement); });
    for (const std::string& id : ids) result.judged.erase(id);
  }

  // Races among what the rank orders by itself; all else that one rank's calls show.
  void JudgeShape(size_t shape) {
    const symmetry::Shape& of = world_.shapes[shape];
    CheckResult alone = Of(symmetry::AsFirstRank(of), of.outcome);
    LeaveOut(kOfAllRanks, alone);
    LeaveOut(kRaces, alone);
    LeaveOut(kOfSeveralRanks, alone);
    std::erase_if(alone.not_checkable, [](const NotCheckable& row) {
      return row.kind == NotCheckable::Kind::kNotAsked;  // of a trace without a case; see below
    });
    const std::vector<Trace> traces{symmetry::Alone(of)};
    alone.Merge(CheckRaces(graph::Lowered(traces)));
    alone.notes.clear();
    const int32_t rank = first_[shape];
    const bool races = std::any_of(alone.findings.begin(), alone.findings.end(),
                                   [](const auto& f) { return kRaces.contains(f.requirement); });
    if (races) racing_.push_back(rank);
    std::erase_if(alone.findings, [](const Finding& f) { return kRaces.contains(f.requirement); });
    if (!alone.findings.empty() && told_++ >= kMostTold) alone.findings.resize(1);
    for (Finding& finding : alone.findings) {
      finding.rank = rank;
      if (count_[shape] > 1)
        finding.message += "; and on " + std::to_string(count_[shape] - 1) +
                           " other ranks, whose traces differ in names alone";
    }
    result_.Merge(std::move(alone));
  }

  // What a rank does not order alone another rank may order.
  void JudgeRaces() {
    if (racing_.empty()) return;
    CheckResult certain = symmetry::RacesForCertain(world_);
    certain.judged.clear();
    certain.not_checkable.clear();
    certain.notes.clear();
    std::set<int32_t> told;
    for (const Finding& finding : certain.findings) told.insert(finding.rank);
    result_.Merge(std::move(certain));
    for (const int32_t rank : racing_) {
      if (told.contains(rank)) continue;
      for (const std::string& id : kRaces) {
        result_.not_checkable.push_back(
            {id, "rank " + std::to_string(rank) +
                     " orders some accesses only through other ranks, if at all; that is judged in "
                     "worlds whose traces are all at hand"});
      }
    }
  }

  // Each entry call of an instance is answered alike on all ranks.
  void JudgeAnswers() {
    struct Answer {
      int32_t first = -1, ranks = 0;
      int64_t event = -1;
    };
    std::map<std::pair<int32_t, int32_t>, std::map<int32_t, Answer>> answers;  // by status
    for (size_t shape = 0; shape < world_.shapes.size(); ++shape) {
      const std::vector<Event>& events = world_.shapes[shape].trace.events;
      for (size_t i = 0; i < events.size(); ++i) {
        if (events[i].kind != EventKind::kCallEnd) continue;
        Answer& answer = answers[{events[i].instance, events[i].call}][events[i].status];
        answer.ranks += count_[shape];
        if (answer.first < 0) answer = {first_[shape], answer.ranks, static_cast<int64_t>(i)};
      }
    }
    for (const auto& [call, by_status] : answers) {
      result_.judged.insert("GE-24");
      if (by_status.size() < 2) continue;
      const auto fewer = [](const auto& a, const auto& b) {
        return a.second.ranks < b.second.ranks;
      };
      const auto odd = std::min_element(by_status.begin(), by_status.end(), fewer);
      const auto most = std::max_element(by_status.begin(), by_status.end(), fewer);
      Finding finding;
      finding.requirement = "GE-24";
      finding.rank = odd->second.first;
      finding.event = odd->second.event;
      finding.operation = "entry call " + std::to_string(call.second);
      finding.expected = "status " + std::to_string(most->first) + ", as on " +
                         std::to_string(most->second.ranks) + " ranks";
      finding.seen = "status " + std::to_string(odd->first) + " on " +
                     std::to_string(odd->second.ranks) + " ranks";
      finding.message = "ranks answer one entry call differently";
      return result_.findings.push_back(std::move(finding));
    }
  }

  // An end that no check has a finding for is not passed over.
  void RequireGoodEnds() {
    for (size_t shape = 0; shape < world_.shapes.size(); ++shape) {
      const EngineOutcome& outcome = world_.shapes[shape].outcome;
      if (outcome.kind == EngineOutcome::Kind::kOk) continue;
      for (const char* id : {"GE-23", "GE-26"}) {
        result_.not_checkable.push_back(
            {id, "rank " + std::to_string(first_[shape]) + " ended in " + outcome.call + ": " +
                     OutcomeName(outcome.kind) + ": " + outcome.reason});
      }
    }
  }

  // An engine that does nothing breaks nothing.
  void RequireShown() {
    std::set<std::string> told = result_.judged;
    for (const NotCheckable& row : result_.not_checkable) told.insert(row.requirement);
    for (const Finding& finding : result_.findings) told.insert(finding.requirement);
    for (const std::string& id : kAlwaysShown) {
      if (!told.contains(id)) result_.not_checkable.push_back({id, "nothing in the run shows it"});
    }
  }

  // Groups by the name of a family of the case have its members, in its order.
  void JudgeMembers() {
    for (size_t i = 0; case_.illegal.empty() && i < case_.instances.size(); ++i) {
      for (const GroupFamily& family : GroupFamilies(case_.instances[i], case_.world))
        JudgeFamily(static_cast<int32_t>(i), family);
    }
  }

  void JudgeFamily(int32_t instance, const GroupFamily& family) {
    const FamilyIndex index(family);
    for (int32_t rank = 0; rank < world_.world(); ++rank) {
      const std::vector<GroupInfo>& groups = world_.ShapeOf(rank).trace.groups;
      for (size_t g = 0; g < groups.size(); ++g) {
        if (groups[g].name != family.name || groups[g].instance != instance) continue;
        result_.judged.insert("PG-02");
        const RankList* const want = index.List(rank);
        const RankList& have = world_.CommOf(rank, static_cast<int32_t>(g)).members;
        if ((want != nullptr && *want == have) || members_told_ >= kMostTold) continue;
        ++members_told_;
        Finding finding;
        finding.requirement = "PG-02";
        finding.rank = rank;
        finding.operation = "group \"" + family.name + "\"";
        finding.expected = want == nullptr ? "no such group" : ListText(*want);
        finding.seen = ListText(have);
        finding.message = "the group has other members, or another order, than the grid gives it";
        result_.findings.push_back(std::move(finding));
      }
    }
  }

  // By name: nobody is to think that it was looked at.
  void LeaveTheRest() {
    std::set<std::string> told = result_.judged;
    for (const NotCheckable& row : result_.not_checkable) told.insert(row.requirement);
    for (const Finding& finding : result_.findings) told.insert(finding.requirement);
    const Registry registry = Registry::Builtin();
    for (const Requirement& row : registry.all()) {
      if (told.contains(row.id) || !Applies(row.id.substr(0, 2))) continue;
      result_.not_checkable.push_back(
          {row.id,
           "of so many ranks it is judged what needs one rank's trace, or the order of all: run "
           "the case with at most " +
               std::to_string(kMostRanksAtOnce) + " ranks",
           NotCheckable::Kind::kNotAsked});
    }
  }

  bool Applies(const std::string& area) const {
    return std::any_of(case_.instances.begin(), case_.instances.end(), [&](const auto& spec) {
      return area == "LW"   ? spec.strategy == ShardingStrategy::kLayerWise
             : area == "EP" ? HasExperts(spec)
             : area == "TP" ? spec.tensor_parallel
             : area == "CP" ? spec.context_parallel
                            : true;
    });
  }

  const Case& case_;
  const CompactWorld& world_;
  std::vector<int32_t> first_, count_;  // by shape: its first rank; how many it has
  std::vector<int32_t> racing_;
  size_t told_ = 0, members_told_ = 0;
  CheckResult result_;
};

}  // namespace

Verdict JudgeManyRanks(const Case& c, const CompactWorld& world,
                       const std::optional<std::string>& left_behind) {
  using Kind = EngineOutcome::Kind;
  Verdict verdict;
  const bool declines = std::all_of(
      world.shapes.begin(), world.shapes.end(),
      [](const symmetry::Shape& shape) { return shape.outcome.kind == Kind::kUnsupported; });
  if (declines) {  // what an engine does before it says so is judged in small worlds
    verdict.outcome = Status::kUnsupported;
    verdict.reason = world.shapes.front().outcome.reason;
    return verdict;
  }
  verdict.result = ManyRanks(c, world).Run();
  Run process{&c, {}, {}, {}, {}};
  if (left_behind) process.left_behind.push_back(*left_behind);
  verdict.result.Merge(JudgeLeftBehind(process));
  KeepOneRowEach(verdict.result);
  verdict.outcome = StatusOf(verdict.result, WarningsOf(verdict.result));
  return verdict;
}

}  // namespace shardproof
