#include "conformance/runner/isolation/starved_runs.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "conformance/checks/robustness/starved.h"
#include "conformance/common/at.h"
#include "conformance/runner/isolation/run_apart.h"

namespace shardproof {
namespace {

// An allocation of a rank, by its place among them.
struct Moment {
  int32_t rank = -1;
  int64_t allocation = 0;
  std::string text;
};

class StarvedRuns {
 public:
  StarvedRuns(const Case& c, const RunCase& run, const SimRunOptions& options)
      : case_(c), run_(run), options_(options) {
    options_.rank.folder += "/starved";
    options_.trace_folder.clear();
  }

  CheckResult Judge() {
    const RunData fed = run_(case_, options_);
    if (!IsGood(JudgeRun(case_, fed.run)))
      return Open("a second run with enough memory was not as good as the first");
    for (const Trace& trace : fed.run.traces) Gather(trace);
    if (moments_.empty()) return Open("the engine allocates no device memory");
    const int64_t all = Length(moments_), some = std::min(all, kMostStarved);
    for (int64_t i = 0; i < some; ++i)
      Starve(At(moments_, i * (all - 1) / std::max(some - 1, int64_t{1})));
    if (runs_ < some && result_.findings.empty())
      return Open(std::to_string(some - runs_) + " of " + std::to_string(some) +
                  " runs did not come to the allocation that was to be answered SPF_NO_MEMORY");
    Conclude(all);
    return std::move(result_);
  }

 private:
  static CheckResult Open(const std::string& why) {
    CheckResult result;
    result.not_checkable.push_back({kStarved, why, NotCheckable::Kind::kMissing});
    return result;
  }

  // All allocations of device memory, those of create first, ranks in turn.
  void Gather(const Trace& trace) {
    int64_t count = 0;
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kAlloc || event.id == SPF_PINNED) continue;
      moments_.push_back({trace.rank, count++,
                          std::to_string(event.count) + " bytes, allocation " +
                              std::to_string(count) + " of rank " + std::to_string(trace.rank)});
    }
    std::stable_sort(moments_.begin(), moments_.end(),
                     [](const Moment& a, const Moment& b) { return a.allocation < b.allocation; });
  }

  void Starve(const Moment& moment) {
    options_.rank.no_memory = {moment.rank, moment.allocation};
    try {
      const RunData data = run_(case_, options_);
      if (!WasStarved(data.run, moment.rank)) return;
      ++runs_;
      CheckResult answer = JudgeStarved(data.run, moment.rank, moment.text);
      if (!answer.findings.empty()) return Add(std::move(answer.findings.front()));
      if (EndOfStarved(data.run, moment.rank) == StarvedEnd::kEnded) {
        ++ended_;
        return;
      }
      ++went_on_;
      JudgeWhatWentOn(data.run, moment);
    } catch (const EngineDied& died) {
      if (!died.end.foreign) throw;  // the suite's failure, not the engine's
      ++runs_;
      for (const Finding& finding : VerdictOf(died).result.findings)
        return Add(WentOnWrong(finding, moment.text));
    }
  }

  void JudgeWhatWentOn(const Run& run, const Moment& moment) {
    const Verdict verdict = JudgeRun(case_, run);
    const std::set<std::string> warnings = WarningsOf(verdict.result);
    for (const Finding& finding : verdict.result.findings) {
      if (!warnings.contains(finding.requirement)) return Add(WentOnWrong(finding, moment.text));
    }
    if (!IsGood(verdict)) ++without_evidence_;
  }

  // The first in full.
  void Add(Finding finding) {
    if (wrong_++ == 0) result_.findings.push_back(std::move(finding));
  }

  void Conclude(int64_t allocations) {
    result_.judged.insert(kStarved);
    if (wrong_ > 1) {
      result_.findings.front().message += "; so in " + std::to_string(wrong_) + " of " +
                                          std::to_string(runs_) +
                                          " runs, each without memory for "
                                          "another allocation";
    }
    if (without_evidence_ > 0 && wrong_ == 0) {
      result_ = Open("in " + std::to_string(without_evidence_) + " of " + std::to_string(runs_) +
                     " runs what went on could not be judged");
    }
    result_.notes.push_back("one of " + std::to_string(allocations) +
                            " allocations had no memory in each of " + std::to_string(runs_) +
                            " runs: " + std::to_string(ended_) + " ended with an error, " +
                            std::to_string(went_on_) + " went on");
  }

  const Case case_;
  const RunCase& run_;
  SimRunOptions options_;
  std::vector<Moment> moments_;
  CheckResult result_;
  int64_t runs_ = 0, ended_ = 0, went_on_ = 0, wrong_ = 0, without_evidence_ = 0;
};

}  // namespace

Verdict JudgeStarvedRuns(Verdict fed, const Case& c, const RunCase& run,
                         const SimRunOptions& options) {
  if (!c.starved || !IsGood(fed)) return fed;
  return JudgeWithFurther(std::move(fed), kStarved, StarvedRuns(c, run, options).Judge());
}

}  // namespace shardproof
