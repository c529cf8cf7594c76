#include "conformance/runner/schedules.h"

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "conformance/checks/metamorphic/metamorphic.h"

namespace shardproof {

namespace {

bool CameToItsEnd(const Run& run) {
  return std::all_of(run.outcomes.begin(), run.outcomes.end(), [](const EngineOutcome& outcome) {
    return outcome.kind == EngineOutcome::Kind::kOk;
  });
}

CheckResult CompareRuns(const Case& c, const Run& first, Run& other) {
  if (!CameToItsEnd(other)) return JudgeRun(c, other).result;
  CheckResult result = CompareResults(first, other, "GE-32");
  result.Merge(CompareCollectiveSequences(first, other, "GE-32"));
  return result;
}

}  // namespace

std::vector<ScheduleRange> SplitSchedules(uint64_t first_seed, int schedules, int jobs) {
  constexpr int kMost = 25;
  const int others = std::max(0, schedules - 1);
  const int size = std::clamp(others / std::max(1, 4 * jobs), 1, kMost);
  std::vector<ScheduleRange> ranges;
  for (int done = 0; done < others; done += size) {
    ranges.push_back({first_seed + 1 + static_cast<uint64_t>(done), std::min(size, others - done)});
  }
  return ranges;
}

Verdict CompareSchedules(const Case& c, const Plugin& plugin, const SimRunOptions& options,
                         const ScheduleRange& range, bool mixed) {
  Verdict verdict;
  verdict.outcome = Outcome::kPass;
  try {
    const Models models = MakeModels(c);
    SimRunOptions one = options;
    one.trace_folder.clear();
    const RunData first = RunOnSim(c, models, plugin, one);
    if (!CameToItsEnd(first.run)) return verdict;  // judged where the case itself is
    for (int i = 0; i < range.count && verdict.result.findings.empty(); ++i) {
      one.seed = range.first_seed + static_cast<uint64_t>(i);
      if (mixed) one.strategy = one.seed % 2 == 0 ? Strategy::kPct : Strategy::kRandom;
      one.rank.folder = options.rank.folder + "/" + std::to_string(one.seed);
      RunData data = RunOnSim(c, models, plugin, one);
      verdict.schedules.push_back(data.schedule_hash);
      verdict.result.Merge(CompareRuns(c, first.run, data.run));
      for (Finding& finding : verdict.result.findings) {
        finding.message += std::string("; under --schedule ") + StrategyName(one.strategy) +
                           " --seed " + std::to_string(one.seed);
      }
    }
    if (!verdict.result.findings.empty()) verdict.outcome = Outcome::kFail;
  } catch (const std::exception& error) {
    verdict.outcome = Outcome::kSuiteError;
    verdict.reason = error.what();
  }
  return verdict;
}

void MergeSchedules(const Verdict& range, Verdict* verdict) {
  const bool judged = verdict->outcome == Outcome::kPass || verdict->outcome == Outcome::kFail;
  if (!judged) return;
  verdict->result.Merge(range.result);
  verdict->schedules.insert(verdict->schedules.end(), range.schedules.begin(),
                            range.schedules.end());
  if (range.outcome == Outcome::kPass) return;
  verdict->outcome = range.outcome;
  verdict->reason = range.reason;
}

void NoteSchedules(int schedules, const std::string& which, Verdict* verdict) {
  if (verdict->outcome != Outcome::kPass) return;
  const std::set<uint64_t> different(verdict->schedules.begin(), verdict->schedules.end());
  verdict->result.notes.push_back(std::to_string(schedules) + " schedules (" + which + "), " +
                                  std::to_string(different.size()) +
                                  " different: the same results and sequences of collectives");
}

}  // namespace shardproof
