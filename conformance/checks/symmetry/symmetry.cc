#include "conformance/checks/symmetry/symmetry.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/graph/graph_checks.h"
#include "conformance/checks/graph/kstar.h"
#include "conformance/checks/graph/requirement_ids.h"
#include "conformance/checks/symmetry/partition.h"
#include "conformance/checks/symmetry/rewritten.h"
#include "conformance/checks/symmetry/sequences.h"
#include "conformance/common/at.h"

namespace shardproof::symmetry {
namespace {

const char* const kMatching[] = {graph::kSameSequence,       graph::kCountsAgree,
                                 graph::kGroupsCreatedAlike, graph::kMessagesPair,
                                 graph::kRegisteredAlike,    graph::kRegisteredTogether,
                                 graph::kRegisteredWhileLive};
const char* const kDeadlock[] = {graph::kNoCycle, graph::kNoCycleSerial};

template <class Ids>
void CannotTell(CheckResult& result, const Ids& ids, const std::string& why) {
  for (const char* id : ids) result.not_checkable.push_back({id, why});
}

class Check {
 public:
  Check(const CompactWorld& world, const Limits& limits) : world_(world), limits_(limits) {}

  CheckResult Run() {
    const std::vector<Difference> differences = Differences(world_);
    if (!differences.empty()) {
      if (LookInto(differences)) return std::move(result_);
      return Whole("the sequences of " + std::to_string(differences.size()) +
                   " communicators differ in what may be left out");
    }
    Deadlock();
    return std::move(result_);
  }

 private:
  // Whether one of them is a finding.
  bool LookInto(const std::vector<Difference>& differences) {
    for (size_t i = 0; i < differences.size() && i < limits_.differences; ++i) {
      const std::vector<Trace> traces = Among(world_, differences[i].ranks);
      CheckResult found = CheckMatching(graph::Lowered(traces));
      for (Finding& finding : found.findings) finding.message += OfOthers(differences[i]);
      if (!found.findings.empty()) result_.Merge(std::move(found));
    }
    if (result_.findings.empty()) return false;
    if (differences.size() > limits_.differences) {
      result_.notes.push_back("matching: " + std::to_string(differences.size()) +
                              " communicators differ; of the first " +
                              std::to_string(limits_.differences) + " it is told how");
    }
    CannotTell(result_, kDeadlock, "operations that meet are not the same (GE-01, GE-09)");
    return true;
  }

  // Words name the ranks that were looked into only.
  static std::string OfOthers(const Difference& difference) {
    std::string text;
    for (const auto& [rank, more] : difference.more) {
      text += "; and " + std::to_string(more) + " more " + (more == 1 ? "rank does" : "ranks do") +
              " what rank " + std::to_string(rank) + " does";
    }
    return text;
  }

  void Deadlock() {
    const Partition partition = Refine(world_);
    std::string why = Breaks(world_, partition);
    Quotient quotient;
    if (why.empty()) {
      quotient = QuotientOf(world_, partition);
      why = quotient.why;
    }
    if (why.empty()) {
      const graph::Lowered lowered(quotient.traces);
      CheckResult matched = CheckMatching(lowered);
      if (!matched.findings.empty() || !matched.not_checkable.empty())
        why = "ranks that stand for others do not meet as they do";
      if (why.empty()) {
        CheckResult found = CheckDeadlock(lowered);
        found.judged.merge(matched.judged);
        JudgeWhatTheQuotientHides(found);
        const bool found_cycle = !found.findings.empty();
        result_.Merge(std::move(found));
        Note(partition, *lowered.program(), found_cycle);
        return;
      }
    }
    result_ = Whole(why);
  }

  // Collectives of the quotient are of one kind, and touch nothing.
  void JudgeWhatTheQuotientHides(CheckResult& result) const {
    bool uneven = false, registers = false;
    for (const Shape& shape : world_.shapes) {
      for (const Event& event : shape.trace.events) {
        uneven = uneven ||
                 (event.kind == EventKind::kCollective &&
                  (event.collective == SPF_ALL_TO_ALL_V || event.collective == SPF_ALL_GATHER_V));
        registers = registers || event.kind == EventKind::kGroupRegister;
      }
    }
    if (uneven) result.judged.insert(graph::kCountsAgree);
    if (!registers) return;
    for (const char* id :
         {graph::kRegisteredAlike, graph::kRegisteredTogether, graph::kRegisteredWhileLive}) {
      result.judged.erase(id);
      result.not_checkable.push_back(
          {id,
           "which buffers members register is compared in worlds whose traces are all at hand"});
    }
  }

  void Note(const Partition& partition, const graph::Program& program, bool found_cycle) {
    std::erase_if(result_.notes, [](const std::string& note) {
      return note.find("k*") != std::string::npos;  // of the ranks that stand for others alone
    });
    if (!found_cycle) {
      int32_t most = 0;  // from the edges of one rank: as in the world
      for (const graph::Slots& slots : graph::CountSlots(program, 0))
        most = std::max(most, slots.local);
      result_.notes.push_back("deadlock: k* at most " + std::to_string(most));
    }
    result_.notes.push_back(
        "symmetry: " + std::to_string(world_.world()) + " ranks of " +
        std::to_string(world_.shapes.size()) + " shapes; " + std::to_string(partition.ranks) +
        " colours of ranks and " + std::to_string(partition.comms) +
        " of communicators stand for all: shown by a partition that was checked");
  }

  CheckResult Whole(const std::string& why) const {
    int64_t events = 0;
    for (int32_t rank = 0; rank < world_.world(); ++rank)
      events += static_cast<int64_t>(world_.ShapeOf(rank).trace.events.size());
    CheckResult result;
    if (events > limits_.events_of_whole_graph) {
      const std::string said = "ranks do not stand for one another (" + why +
                               "), and the graph of all has " + std::to_string(events) +
                               " events, more than " +
                               std::to_string(limits_.events_of_whole_graph);
      CannotTell(result, kMatching, said);
      CannotTell(result, kDeadlock, said);
      return result;
    }
    std::vector<Trace> traces;
    for (int32_t rank = 0; rank < world_.world(); ++rank) traces.push_back(world_.Expand(rank));
    const graph::Lowered lowered(traces);
    result = CheckMatching(lowered);
    if (result.findings.empty()) {
      result.Merge(CheckDeadlock(lowered));
    } else {
      CannotTell(result, kDeadlock, "operations that meet are not the same (GE-01, GE-09)");
    }
    result.notes.push_back("symmetry: the graph of all ranks was made: " + why);
    return result;
  }

  const CompactWorld& world_;
  const Limits limits_;
  CheckResult result_;
};

}  // namespace

CheckResult CheckManyRanks(const CompactWorld& world, const Limits& limits) {
  return Check(world, limits).Run();
}

CheckResult RacesForCertain(const CompactWorld& world) {
  const Partition partition = Refine(world);
  CheckResult none;
  if (!Breaks(world, partition).empty()) return none;
  const Quotient quotient = QuotientOf(world, partition);
  if (!quotient.why.empty()) return none;
  return CheckRaces(graph::Lowered(quotient.traces));
}

}  // namespace shardproof::symmetry
