#include "conformance/checks/graph/comm_schedule.h"

#include <algorithm>

#include "conformance/checks/base/reduces.h"
#include "conformance/checks/graph/deadlock.h"
#include "conformance/checks/graph/finding_at.h"
#include "conformance/checks/graph/matching.h"
#include "conformance/checks/graph/requirement_ids.h"
#include "conformance/checks/program/describe.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

using namespace graph;

// Two steps reduce gradients over several ranks: there are two collectives to keep apart.
bool MustShow(const InstanceSpec& spec) {
  return MostRanksOfAParameter(spec) > 1 &&
         std::count(spec.script.begin(), spec.script.end(), 't') > 1;
}

class Judge {
 public:
  Judge(const Case& spec, const Lowered& run, CheckResult& result)
      : spec_(spec), run_(run), result_(result) {}

  void OneCommunicator(size_t instance) {
    const std::string why = Why();
    if (!why.empty()) return CannotTell(kOneInFlight, instance, why);
    const Program& program = *run_.program();
    if (!Sound(program))
      return CannotTell(kOneInFlight, instance, "the run does not match or can hang");
    Pairs pairs;
    for (int32_t rank = 0; rank < spec_.world; ++rank)
      Compare(KernelsOf(rank, static_cast<int32_t>(instance)), pairs);
    if (pairs.all == 0) return CannotTell(kOneInFlight, instance, NothingSeen());
    result_.judged.insert(kOneInFlight);
    if (pairs.apart < pairs.all) ReportPair(pairs);
  }

  void OneQueue(size_t instance) {
    std::string why = Why();
    if (why.empty()) why = run_.program()->unordered_issue;
    if (!why.empty()) return CannotTell(kNoCycleAsked, instance, why);
    const Program& program = *run_.program();
    CheckResult matched;
    const Matching matching = JudgeMatching(program, matched);
    if (!matching.ok) return CannotTell(kNoCycleAsked, instance, "the run does not match");
    if (std::optional<Finding> hang =
            HangOn(program, Profile::kE2, matching.cut, kNoCycleAsked,
                   "a cyclic wait in the one queue of a device: ",
                   "What is issued first starts first: issue no wait ahead of the work that it "
                   "waits for, and collectives in one order on all ranks")) {
      result_.judged.insert(kNoCycleAsked);
      result_.findings.push_back(std::move(*hang));
    } else if (matching.cut) {
      CannotTell(kNoCycleAsked, instance, "the run was ended early");
    } else if (!AnyKernel(static_cast<int32_t>(instance))) {
      CannotTell(kNoCycleAsked, instance, "no rank issued a collective with other ranks");
    } else {
      result_.judged.insert(kNoCycleAsked);
      result_.notes.emplace_back("schedule: no timing hangs in one hardware queue");
    }
  }

 private:
  // Kernels that stand next to each other in a sequence that agrees with every order: if each of
  // them is over before the next starts, of any two one is.
  struct Pairs {
    size_t all = 0, apart = 0;
    uint32_t first = kNone, second = kNone;  // that nothing orders
  };

  static std::string NothingSeen() {
    return "no rank issued two collectives with other ranks: nothing shows their order";
  }

  // What the traces lack; empty: nothing.
  std::string Why() const {
    if (static_cast<size_t>(spec_.world) != run_.traces().size())
      return "there are not the traces of all ranks";
    for (const Trace& trace : run_.traces()) {
      if (!trace.provides.collectives || !trace.provides.sync)
        return "the traces do not provide collectives and synchronisation";
    }
    if (run_.program() == nullptr) return run_.why();
    return run_.program()->unordered_threads;
  }

  void CannotTell(const char* id, size_t instance, const std::string& why) {
    const bool due = MustShow(spec_.instances[instance]);
    result_.not_checkable.push_back(
        {id, why, due ? NotCheckable::Kind::kMissing : NotCheckable::Kind::kNotAsked});
  }

  // Whether it may wait for other ranks: a communicator kernel, or a collective that blocks a host.
  bool Meets(const Entry& entry, int32_t instance) const {
    if (entry.kind != EntryKind::kKernel && entry.kind != EntryKind::kHostCollective) return false;
    const Program& program = *run_.program();
    return std::any_of(
        program.parts.begin() + entry.parts.begin, program.parts.begin() + entry.parts.end,
        [&](const Part& part) {
          const Event& event = program.event(part);
          return event.kind == EventKind::kCollective && event.instance == instance &&
                 At(program.trace(part.rank).groups, event.group).world_ranks.size() > 1;
        });
  }

  std::vector<uint32_t> KernelsOf(int32_t rank, int32_t instance) const {
    const Program& program = *run_.program();
    std::vector<uint32_t> kernels;
    for (uint32_t e = At(program.first_entry, rank); e < At(program.first_entry, rank + 1); ++e) {
      if (Meets(program.entries[e], instance)) kernels.push_back(e);
    }
    return kernels;
  }

  bool AnyKernel(int32_t instance) const {
    const std::vector<Entry>& entries = run_.program()->entries;
    return std::any_of(entries.begin(), entries.end(),
                       [&](const Entry& entry) { return Meets(entry, instance); });
  }

  void Compare(std::vector<uint32_t> kernels, Pairs& pairs) const {
    MayOrder& order = run_.may();
    std::sort(kernels.begin(), kernels.end(), [&order](uint32_t a, uint32_t b) {
      return order.StartPlace(a) < order.StartPlace(b);
    });
    for (size_t i = 1; i < kernels.size(); ++i) {
      ++pairs.all;
      if (order.Precedes(kernels[i - 1], kernels[i])) {
        ++pairs.apart;
      } else if (pairs.first == kNone) {
        pairs.first = std::min(kernels[i - 1], kernels[i]);  // as they are issued
        pairs.second = std::max(kernels[i - 1], kernels[i]);
      }
    }
  }

  void ReportPair(const Pairs& pairs) {
    const Program& program = *run_.program();
    const Entry &first = program.entries[pairs.first], &second = program.entries[pairs.second];
    Finding finding = FindingAt(kOneInFlight, program, second.rank, second.event);
    finding.operation = Describe(program, second);
    finding.begins = first.event;
    finding.expected = "ordered after " + Describe(program, first) + " (event " +
                       std::to_string(first.event) + ")";
    finding.seen = "no order: both can be in flight at once";
    finding.message = std::to_string(pairs.all - pairs.apart) + " of " + std::to_string(pairs.all) +
                      " pairs of collectives that follow each other are in no order: let each wait "
                      "for an event behind the one issued before it, or put all on one stream";
    result_.findings.push_back(std::move(finding));
  }

  const Case& spec_;
  const Lowered& run_;
  CheckResult& result_;
};

}  // namespace

CheckResult CheckCommSchedule(const Case& spec, const graph::Lowered& run) {
  CheckResult result;
  if (!spec.illegal.empty()) return result;
  Judge judge(spec, run, result);
  for (size_t i = 0; i < spec.instances.size(); ++i) {
    if (spec.instances[i].schedule == CommSchedule::kOneCommunicator) judge.OneCommunicator(i);
    if (spec.instances[i].schedule == CommSchedule::kOneQueue) judge.OneQueue(i);
  }
  return result;
}

}  // namespace shardproof
