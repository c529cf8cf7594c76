#include "conformance/runner/timings.h"

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "conformance/checks/base/one_row.h"
#include "conformance/checks/metamorphic/metamorphic.h"
#include "conformance/checks/robustness/left_behind.h"

namespace shardproof {

namespace {

CheckResult CompareRuns(const Run& first, Run& other) {
  CheckResult result = JudgeLeftBehind(other);
  if (const auto ended = EndedBadly(other, "GE-32")) {
    // Who is to blame, and for what.
    result.findings = JudgeRun(*other.spec, other).result.findings;
    if (result.findings.empty()) result.findings.push_back(*ended);
    return result;
  }
  result.Merge(CompareResults(first, other, "GE-32"));
  result.Merge(CompareCollectiveSequences(first, other, "GE-32"));
  return result;
}

}  // namespace

std::vector<TimingRange> SplitTimings(uint64_t first_seed, int timings, int jobs) {
  constexpr int kMost = 25;
  const int others = std::max(0, timings - 1);
  const int size = std::clamp(others / std::max(1, 4 * jobs), 1, kMost);
  std::vector<TimingRange> ranges;
  for (int done = 0; done < others; done += size) {
    ranges.push_back({first_seed + 1 + static_cast<uint64_t>(done), std::min(size, others - done)});
  }
  return ranges;
}

Verdict CompareTimings(const Case& c, const RunCase& run, const SimRunOptions& options,
                       const TimingRange& range, bool mixed) {
  Verdict verdict;
  verdict.outcome = Outcome::kPass;
  try {
    SimRunOptions one = options;
    one.trace_folder.clear();
    const std::vector<Case> legs = LegsOf(c);
    const RunData first = RunLegs(legs, run, one);
    if (EndedBadly(first.run, "GE-32")) return verdict;  // judged where the case itself is
    for (int i = 0; i < range.count && verdict.result.findings.empty(); ++i) {
      one.seed = range.first_seed + static_cast<uint64_t>(i);
      if (mixed) one.policy = one.seed % 2 == 0 ? TimingPolicy::kPct : TimingPolicy::kRandom;
      one.rank.folder = options.rank.folder + "/" + std::to_string(one.seed);
      RunData data = RunLegs(legs, run, one);
      verdict.timings.push_back(data.timing_hash);
      verdict.result.Merge(CompareRuns(first.run, data.run));
      for (Finding& finding : verdict.result.findings) {
        finding.message += std::string("; the other run had --timing ") +
                           TimingPolicyName(one.policy) + " --seed " + std::to_string(one.seed);
      }
    }
    if (!verdict.result.findings.empty()) verdict.outcome = Outcome::kFail;
  } catch (const std::exception& error) {
    verdict.outcome = Outcome::kSuiteError;
    verdict.reason = error.what();
  }
  return verdict;
}

void MergeTimings(const Verdict& range, Verdict* verdict) {
  const bool judged = verdict->outcome == Outcome::kPass || verdict->outcome == Outcome::kPartial ||
                      verdict->outcome == Outcome::kFail;
  if (!judged) return;
  verdict->result.Merge(range.result);
  verdict->timings.insert(verdict->timings.end(), range.timings.begin(), range.timings.end());
  KeepOneRowEach(verdict->result);
  const bool open =
      std::any_of(range.result.not_checkable.begin(), range.result.not_checkable.end(),
                  [](const NotCheckable& row) { return row.kind == NotCheckable::Kind::kMissing; });
  if (open && verdict->outcome == Outcome::kPass) verdict->outcome = Outcome::kPartial;
  if (range.outcome == Outcome::kPass) return;
  verdict->outcome = range.outcome;
  verdict->reason = range.reason;
}

void NoteTimings(int timings, const std::string& which, Verdict* verdict) {
  if (verdict->outcome != Outcome::kPass && verdict->outcome != Outcome::kPartial) return;
  const std::set<uint64_t> different(verdict->timings.begin(), verdict->timings.end());
  verdict->result.notes.push_back(std::to_string(timings) + " timings (" + which + "), " +
                                  std::to_string(different.size()) + " different: " +
                                  (verdict->result.judged.contains("GE-32")
                                       ? "the same results and sequences of collectives"
                                       : "what they gave could not be compared"));
}

}  // namespace shardproof
