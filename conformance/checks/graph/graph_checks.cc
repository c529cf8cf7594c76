#include "conformance/checks/graph/graph_checks.h"

#include <algorithm>

#include "conformance/checks/graph/deadlock.h"
#include "conformance/checks/graph/matching.h"
#include "conformance/checks/graph/races.h"
#include "conformance/checks/graph/requirement_ids.h"
#include "conformance/checks/graph/waits.h"
#include "conformance/checks/program/program.h"

namespace shardproof {

namespace {

using namespace graph;

const std::vector<std::string> kMatchingIds = {
    kSameSequence,    kCountsAgree,        kGroupsCreatedAlike, kMessagesPair,
    kRegisteredAlike, kRegisteredTogether, kRegisteredWhileLive};
const std::vector<std::string> kDeadlockIds = {kNoCycle, kNoCycleSerial};
const std::vector<std::string> kRaceIds = {kNoDeviceRace, kNoHostRace, kNoLifetimeRace};

// Which of the families to answer for.
struct Wanted {
  bool matching = false, deadlock = false, races = false;
};

class Checker {
 public:
  Checker(const Lowered& run, Wanted wanted) : run_(run), traces_(run.traces()), wanted_(wanted) {}

  CheckResult Run() {
    std::string why = Incomplete();
    if (why.empty() && run_.program() == nullptr) why = run_.why();
    if (why.empty()) {
      RunAll(*run_.program());
    } else {
      NotCheckable(wanted_.matching, kMatchingIds, why);
      NotCheckable(wanted_.deadlock, kDeadlockIds, why);
      NotCheckable(wanted_.races, kRaceIds, why);
    }
    if (wanted_.races) Waits();
    return std::move(result_);
  }

 private:
  void NotCheckable(bool wanted, const std::vector<std::string>& ids, const std::string& why) {
    for (const std::string& id : ids) {
      if (wanted) result_.not_checkable.push_back({id, why});
    }
    if (wanted && ids == kDeadlockIds && AnyOnTheHost())
      result_.not_checkable.push_back({kNoCycleOneQueue, why});
  }

  // Only operations of several ranks that block a host can hang in one hardware queue alone.
  bool AnyOnTheHost() const {
    return std::any_of(traces_.begin(), traces_.end(), [](const Trace& trace) {
      return std::any_of(trace.events.begin(), trace.events.end(), [](const Event& event) {
        return event.kind == EventKind::kGroupCreate || event.kind == EventKind::kGroupRegister ||
               (event.kind == EventKind::kCollective && event.stream < 0);
      });
    });
  }

  // Whatever else the traces lack.
  void Waits() {
    std::string why = traces_.empty() ? "there are no traces" : LackingSync();
    if (why.empty() && run_.program() == nullptr) why = run_.why();
    if (why.empty()) why = run_.program()->unordered_threads;
    NotCheckable(!why.empty(), {kWaitAfterRecord}, why);
    if (why.empty()) JudgeWaits(*run_.program(), result_);
  }

  std::string LackingSync() const {
    return Lacking(&Provides::sync, "streams and synchronisation");
  }

  // The first rank whose trace lacks what a check needs; empty: none.
  std::string Lacking(bool Provides::*what, const char* name) const {
    for (const Trace& trace : traces_) {
      if (!(trace.provides.*what))
        return "the trace of rank " + std::to_string(trace.rank) + " does not provide " + name;
    }
    return "";
  }

  std::string Incomplete() const {
    if (traces_.empty()) return "there are no traces";
    if (static_cast<size_t>(traces_[0].world) == traces_.size())
      return Lacking(&Provides::collectives, "collectives");
    return "there are traces of " + std::to_string(traces_.size()) + " of " +
           std::to_string(traces_[0].world) + " ranks";
  }

  void RunAll(const Program& program) {
    CheckResult matched;
    const Matching matching = JudgeMatching(program, matched);
    if (wanted_.matching) {
      result_ = std::move(matched);
      const std::string groups = Lacking(&Provides::groups, "groups");
      if (!groups.empty()) {
        result_.judged.erase(kGroupsCreatedAlike);
        NotCheckable(true, {kGroupsCreatedAlike}, groups);
      }
    }
    if (program.entries.empty()) return;  // nothing was done: nothing is shown
    if (!wanted_.deadlock && !wanted_.races) {
      if (matching.ok && matching.cut) ExplainCut(program, matching);
      return;
    }
    if (!matching.ok) {
      const std::string why = "operations that meet are not the same (" +
                              std::string(kSameSequence) + ", " + kMessagesPair + ")";
      NotCheckable(wanted_.deadlock, kDeadlockIds, why);
      NotCheckable(wanted_.races, kRaceIds, why);
      return;
    }
    JudgeOrder(program, matching);
  }

  // Matching alone: a hang that a cycle explains is left to the deadlock check.
  void ExplainCut(const Program& program, const Matching& matching) {
    CheckResult deadlock;
    JudgeDeadlock(program, matching, deadlock);
    for (Finding& finding : deadlock.findings) {
      if (finding.requirement != kNoCycle) result_.findings.push_back(std::move(finding));
    }
  }

  void JudgeOrder(const Program& program, const Matching& matching) {
    const std::string sync = LackingSync();
    if (!sync.empty()) {
      NotCheckable(wanted_.deadlock, kDeadlockIds, sync);
      NotCheckable(wanted_.races, kRaceIds, sync);
      return;
    }
    CheckResult deadlock;
    const DeadlockVerdict verdict = JudgeDeadlock(program, matching, deadlock);
    if (wanted_.deadlock) {
      if (!wanted_.matching) {  // what is missing is the matching check's to report
        std::erase_if(deadlock.findings, [](const Finding& finding) {
          return finding.requirement == kSameSequence || finding.requirement == kMessagesPair ||
                 finding.requirement == kGroupsCreatedAlike ||
                 finding.requirement == kRegisteredAlike;
        });
      }
      Merge(std::move(deadlock));
    }
    if (!wanted_.races) return;
    std::string why = program.unordered_threads;
    if (why.empty()) why = Lacking(&Provides::memory, "memory and byte ranges");
    if (why.empty() && !verdict.e0)
      why =
          "the run can hang (" + std::string(kNoCycle) + "): order is only defined without a cycle";
    NotCheckable(!why.empty(), kRaceIds, why);
    if (why.empty()) JudgeRaces(program, run_.must(), verdict.never_started, result_);
  }

  void Merge(CheckResult other) {
    for (auto& finding : other.findings) result_.findings.push_back(std::move(finding));
    result_.judged.merge(other.judged);
    for (auto& one : other.not_checkable) result_.not_checkable.push_back(std::move(one));
    for (auto& note : other.notes) result_.notes.push_back(std::move(note));
    if (other.slots) result_.slots = std::move(other.slots);
  }

  const Lowered& run_;
  const std::vector<Trace>& traces_;
  Wanted wanted_;
  CheckResult result_;
};

}  // namespace

CheckResult CheckMatching(const graph::Lowered& run) {
  return Checker(run, {true, false, false}).Run();
}
CheckResult CheckDeadlock(const graph::Lowered& run) {
  return Checker(run, {false, true, false}).Run();
}
CheckResult CheckRaces(const graph::Lowered& run) {
  return Checker(run, {false, false, true}).Run();
}
CheckResult CheckGraph(const graph::Lowered& run) { return Checker(run, {true, true, true}).Run(); }

}  // namespace shardproof
