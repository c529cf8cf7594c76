#include "conformance/checks/graph/deadlock.h"

#include <algorithm>
#include <map>

#include "conformance/checks/graph/finding_at.h"
#include "conformance/checks/graph/priorities.h"
#include "conformance/checks/graph/requirement_ids.h"
#include "conformance/checks/program/connections.h"
#include "conformance/checks/program/describe.h"
#include "conformance/common/at.h"

namespace shardproof::graph {

namespace {

struct Sorted {
  WaitGraph graph;
  TopologicalOrder order;
};

Sorted SortedGraph(const Program& program, Profile profile, bool expect_missing) {
  GraphOptions options;
  options.profile = profile;
  options.expect_missing = expect_missing;
  Sorted sorted;
  sorted.graph = BuildGraph(program, options);
  sorted.order = Sort(sorted.graph.graph, sorted.graph.never);
  return sorted;
}

// The entry of the cycle that a person should look at first: of a rank whose order is the odd one
// if that can be told, else the first communicator kernel.
const Entry& EntryToBlame(const Program& program, const WaitGraph& graph,
                          const std::vector<uint32_t>& cycle) {
  const Entry* found = nullptr;
  for (const uint32_t node : cycle) {
    if (graph.what[node] < 0) continue;
    const Entry& entry = At(program.entries, graph.what[node]);
    if (found == nullptr || (entry.joint() && !found->joint())) found = &entry;
  }
  if (found != nullptr) return *found;
  // Ranks that wait in different calls for each other's missing part: operations only.
  const auto operation = static_cast<uint32_t>(~graph.what[cycle[0]]);
  return program.entries[program.parts[program.PartsOf(operation)[0]].entry];
}

// A circle of waits as a finding: before and after are what is said around who waits for whom.
Finding HangFinding(const char* id, const Program& program, const Sorted& sorted, Profile profile,
                    const std::vector<uint32_t>& cycle, const std::string& before,
                    const std::string& after) {
  const Entry& entry = EntryToBlame(program, sorted.graph, cycle);
  Finding finding = FindingAt(id, program, entry.rank, entry.event);
  finding.operation = Describe(program, entry);
  finding.expected = "an order of starts and completions that all ranks can follow";
  const Circle circle = ExplainCycle(program, sorted.graph, profile, cycle);
  finding.seen = circle.lines;
  finding.message = before + circle.ranks + ". " + after;
  return finding;
}

class Judge {
 public:
  Judge(const Program& program, const Matching& matching, CheckResult& result)
      : program_(program), matching_(matching), result_(result) {}

  DeadlockVerdict Run() {
    for (const char* id : {kNoCycle, kNoCycleSerial}) {
      if (!NotCheckable(id, program_.unordered_threads)) result_.judged.insert(id);
    }
    if (!program_.unordered_threads.empty()) return verdict_;
    const bool serial = program_.unordered_issue.empty();
    if (!serial) NotCheckable(kNoCycleSerial, program_.unordered_issue);
    // Without collectives that block the host, safe when serialised implies safe in all weaker
    // profiles.
    const bool blocking =
        std::any_of(program_.entries.begin(), program_.entries.end(),
                    [](const Entry& entry) { return entry.kind == EntryKind::kHostCollective; });
    if (serial && !matching_.cut && SortedGraph(program_, Profile::kE2s, false).order.complete()) {
      verdict_.e0 = true;
      if (blocking) JudgeOneQueue();
      const std::string overtake = PrioritiesThatDiffer(program_);
      Notes(overtake.empty() ? "E0, E1, E2s: safe" : "E0, E2s: safe; E1: " + NotClaimed(overtake),
            true);
      NoteConnections();
      return verdict_;
    }
    if (!JudgeE0()) return verdict_;
    if (serial) JudgeSerial();
    NoteConnections();
    return verdict_;
  }

 private:
  static std::string NotClaimed(const std::string& why) {
    return "not claimed, kernels need not start in issue order (" + why + ")";
  }

  bool NotCheckable(const char* id, const std::string& why) {
    if (why.empty()) return false;
    result_.judged.erase(id);
    result_.not_checkable.push_back({id, why});
    return true;
  }

  void Report(const char* id, const Sorted& sorted, Profile profile,
              const std::vector<uint32_t>& cycle, const std::string& before,
              const std::string& after) {
    result_.findings.push_back(HangFinding(id, program_, sorted, profile, cycle, before, after));
  }

  bool JudgeE0() {
    const Sorted sorted = SortedGraph(program_, Profile::kE0, matching_.cut);
    if (sorted.order.complete() && !matching_.cut) {
      verdict_.e0 = true;
      return true;
    }
    const std::vector<uint32_t> cycle = ShortCycle(sorted.graph.graph, sorted.order);
    if (cycle.empty()) {  // the run was ended: some operations never get all members, and nobody is
                          // to blame here
      if (matching_.cut) ReportMissing(program_, matching_.first_missing, result_);
      FindStarted();
      return false;
    }
    std::string severity;
    if (!matching_.cut) {
      const Sorted eager = SortedGraph(program_, Profile::kEager, false);
      severity = eager.order.complete() ? "Sends that are buffered hide it; "
                                        : "It hangs on every implementation; ";
    }
    Report(kNoCycle, sorted, Profile::kE0, cycle,
           matching_.cut ? "the run hung: " : "a cyclic wait: ",
           severity +
               "issue the operations in the same order on all ranks, or remove one of the waits");
    return false;
  }

  // Which entries ran in a run that was cut: races are judged among them.
  void FindStarted() {
    const Sorted sorted = SortedGraph(program_, Profile::kE0, false);
    verdict_.e0 = true;
    verdict_.never_started.resize(program_.entries.size());
    for (size_t e = 0; e < program_.entries.size(); ++e) {
      verdict_.never_started[e] = sorted.order.position[sorted.graph.start[e]] == kUnplaced;
    }
  }

  void JudgeSerial() {
    const Sorted sorted = SortedGraph(program_, Profile::kE2s, false);
    const std::vector<uint32_t> cycle = ShortCycle(sorted.graph.graph, sorted.order);
    const bool e1 = Safe(program_, Profile::kE1), e2 = e1 && Safe(program_, Profile::kE2);
    const std::string weakest =
        !e1   ? "it hangs as soon as kernels start in issue order"
        : !e2 ? "it hangs when all streams share one hardware queue"
              : "it needs a device that runs several communicator kernels at once";
    if (cycle.empty()) return;
    Report(kNoCycleSerial, sorted, Profile::kE2s, cycle,
           "a cyclic wait when communicator kernels run one at a time: ",
           "Issue communicators in the same order on all ranks (" + weakest + ")");
    const std::string overtake = PrioritiesThatDiffer(program_);
    Notes("E0: safe; E1: " +
              (!e1                ? "can hang"
               : overtake.empty() ? "safe"
                                  : NotClaimed(overtake)) +
              "; E2: " + (e2 ? "safe" : "can hang") + "; E2s: can hang",
          e1);
  }

  void JudgeOneQueue() {
    result_.judged.insert(kNoCycleOneQueue);
    const Sorted sorted = SortedGraph(program_, Profile::kE2, false);
    if (sorted.order.complete()) return;
    const std::vector<uint32_t> cycle = ShortCycle(sorted.graph.graph, sorted.order);
    if (cycle.empty()) return;
    Report(kNoCycleOneQueue, sorted, Profile::kE2, cycle,
           "a cyclic wait when all streams of a device share one queue: ",
           "Issue the collective that blocks the host earlier, or the device work later");
  }

  // Said, not judged: only such a library makes it a hang.
  void NoteConnections() {
    if (ConnectionsOf(program_).empty()) return;
    const Sorted sorted = SortedGraph(program_, Profile::kConnects, false);
    if (sorted.order.complete()) return;
    const Slice& meetings = sorted.graph.connections;
    std::vector<std::string> launches;
    std::map<int32_t, std::string> waits;  // by rank, the first one
    for (const uint32_t node : ShortCycle(sorted.graph.graph, sorted.order)) {
      const int64_t what = sorted.graph.what[node];
      if (what < 0) {
        if (node >= meetings.begin && node < meetings.end)
          launches.push_back(DescribeOperation(program_, static_cast<uint32_t>(~what)));
        continue;
      }
      const Entry& entry = At(program_.entries, what);
      if (entry.kind == EntryKind::kHostSync || entry.kind == EntryKind::kHostCollective)
        waits.emplace(entry.rank, "rank " + std::to_string(entry.rank) + " in " +
                                      Describe(program_, entry) + " (event " +
                                      std::to_string(entry.event) + ")");
    }
    result_.notes.push_back(NoteOf(launches, waits));
  }

  static std::string NoteOf(const std::vector<std::string>& launches,
                            const std::map<int32_t, std::string>& waits) {
    constexpr size_t kMostNamed = 4;
    std::string text =
        "deadlock: it hangs, or fails, where the first message between two ranks is a meeting of "
        "their hosts, as with NCCL: launch of ";
    for (size_t i = 0; i < std::min(launches.size(), kMostNamed); ++i)
      text += (i == 0 ? "" : ", ") + launches[i];
    if (launches.size() > kMostNamed)
      text += " and " + std::to_string(launches.size() - kMostNamed) + " more";
    const char* join = "; a host waits meanwhile: ";
    for (const auto& [rank, wait] : waits) {
      text += join + wait;
      join = ", ";
    }
    return text;
  }

  void Notes(const std::string& profiles, bool in_order) {
    KernelSlots most;
    most.profiles = profiles;
    for (const Slots& one : CountSlots(program_)) {
      most.spin = std::max(most.spin, one.spin);
      most.resident = std::max(most.resident, one.resident);
      most.exact = most.exact && one.exact;
    }
    std::string text = DeadlockNote(most);
    if (!in_order) text += "; no number of slots is enough when kernels start in issue order";
    result_.notes.push_back(text);
    if (result_.findings.empty()) result_.slots = std::move(most);
  }

  const Program& program_;
  const Matching& matching_;
  CheckResult& result_;
  DeadlockVerdict verdict_;
};

}  // namespace

std::optional<Finding> HangOn(const Program& program, Profile profile, bool cut,
                              const char* requirement, const std::string& before,
                              const std::string& after) {
  const Sorted sorted = SortedGraph(program, profile, cut);
  if (sorted.order.complete()) return std::nullopt;
  const std::vector<uint32_t> cycle = ShortCycle(sorted.graph.graph, sorted.order);
  if (cycle.empty()) return std::nullopt;  // the run was ended: nobody is to blame here
  return HangFinding(requirement, program, sorted, profile, cycle, before, after);
}

std::string DeadlockNote(const KernelSlots& slots) {
  const auto number = [&](int32_t of) {
    return (slots.exact ? "" : "at most ") + std::to_string(of);
  };
  return "deadlock: " + slots.profiles + "; E3: " + (slots.spin <= 1 ? "safe" : "not shown") +
         "; k* " + number(slots.spin) + " (resident " + number(slots.resident) + ")";
}

bool Sound(const Program& program) {
  CheckResult matched;
  return JudgeMatching(program, matched).ok && Safe(program, Profile::kE0);
}

bool Safe(const Program& program, Profile profile) {
  return SortedGraph(program, profile, false).order.complete();
}

DeadlockVerdict JudgeDeadlock(const Program& program, const Matching& matching,
                              CheckResult& result) {
  return Judge(program, matching, result).Run();
}

}  // namespace shardproof::graph
