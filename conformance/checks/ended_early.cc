#include "conformance/checks/ended_early.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "conformance/checks/robustness/answers.h"
#include "conformance/checks/robustness/robustness.h"
#include "conformance/requirements/registry.h"

namespace shardproof {

namespace {

using Kind = EngineOutcome::Kind;

struct EarlyEnd {
  int32_t rank = -1;
  std::string operation;  // entry call
  std::string seen;
};

// Of the first rank that did not go to the end, one that failed itself before one that only waited.
EarlyEnd FirstEarlyEnd(const Run& run) {
  EarlyEnd first;
  const auto take = [&](size_t rank, std::string operation, std::string seen) {
    if (first.rank < 0) first = {static_cast<int32_t>(rank), std::move(operation), std::move(seen)};
  };
  const auto outcomes = [&](bool aborted) {
    for (size_t rank = 0; rank < run.outcomes.size(); ++rank) {
      const EngineOutcome& outcome = run.outcomes[rank];
      if (outcome.kind == Kind::kOk || (outcome.kind == Kind::kAborted) != aborted) continue;
      take(rank, outcome.call,
           std::string(OutcomeName(outcome.kind)) +
               (outcome.reason.empty() ? "" : ": " + outcome.reason));
    }
  };
  outcomes(false);
  outcomes(true);
  for (size_t i = 0; i < run.traces.size(); ++i) {
    const Trace& trace = run.traces[i];
    if (trace.end == TraceEnd::kComplete) continue;
    take(i, "the run",
         std::string("its trace ends as ") + (trace.end == TraceEnd::kDied ? "died" : "aborted") +
             (trace.end_reason.empty() ? "" : ": " + trace.end_reason));
  }
  return first;
}

// A broken SHOULD is no reason to end.
bool Explained(const CheckResult& result) {
  if (result.findings.empty()) return false;
  const auto should = Registry::Builtin().Ids(RequirementLevel::kShould);
  return std::any_of(result.findings.begin(), result.findings.end(),
                     [&](const Finding& finding) { return !should.contains(finding.requirement); });
}

}  // namespace

void JudgeEarlyEnd(const Analysis& a, CheckResult& result) {
  if (a.ended_well() || !a.legal()) return;
  const EarlyEnd end = FirstEarlyEnd(a.run());
  std::string declined;
  if (!Declines(a.run(), &declined) && !Explained(result)) {
    Finding finding;
    finding.requirement = "GE-26";
    finding.rank = end.rank;
    finding.operation = end.operation;
    finding.expected = "the run goes to its end";
    finding.seen = end.seen;
    finding.message = "the run ended early, and nothing that was recorded says why";
    result.findings.push_back(std::move(finding));
  }
  std::set<std::string> found;
  for (const Finding& finding : result.findings) found.insert(finding.requirement);
  const std::string why = "the run ended early: rank " + std::to_string(end.rank) + ", " +
                          end.operation + ", " + end.seen;
  for (const std::string& id : result.judged) {
    if (!found.contains(id)) result.not_checkable.push_back({id, why});
  }
  result.judged = std::move(found);
}

}  // namespace shardproof
