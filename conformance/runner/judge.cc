#include "conformance/runner/judge.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "conformance/checks/check_all.h"
#include "conformance/checks/metamorphic/metamorphic.h"
#include "conformance/checks/robustness/robustness.h"
#include "conformance/oracle/oracle.h"

namespace shardproof {

namespace {

// Unsupported is an answer only if every rank that takes part gives it.
bool AllUnsupported(const Run& run, std::string* reason) {
  bool any = false;
  for (const EngineOutcome& outcome : run.outcomes) {
    if (outcome.kind == EngineOutcome::Kind::kUnsupported) {
      any = true;
      *reason = outcome.reason.empty() ? "the engine answered SPF_UNSUPPORTED in " + outcome.call
                                       : outcome.reason;
    } else if (outcome.kind != EngineOutcome::Kind::kOk) {
      return false;
    }
  }
  if (!any) return false;
  // A rank outside the grid has nothing to decline; one inside must have answered the same.
  return std::all_of(run.outcomes.begin(), run.outcomes.end(), [&](const EngineOutcome& outcome) {
    const size_t rank = static_cast<size_t>(&outcome - run.outcomes.data());
    return outcome.kind == EngineOutcome::Kind::kUnsupported || run.traces[rank].events.empty();
  });
}

std::string FirstReason(const CheckResult& result) {
  return result.not_checkable.empty()
             ? "no requirement applied"
             : result.not_checkable.front().requirement + ": " + result.not_checkable.front().why;
}

// The run passed, so the engine carries out the case; what ends the other run is a difference.
void AddEarlyEnds(const PartnerRun& other, CheckResult* result) {
  for (size_t rank = 0; rank < other.run.outcomes.size(); ++rank) {
    const EngineOutcome& outcome = other.run.outcomes[rank];
    if (outcome.kind == EngineOutcome::Kind::kOk) continue;
    Finding finding;
    finding.requirement = other.partner->requirement;
    finding.rank = static_cast<int>(rank);
    finding.operation = outcome.call;
    finding.expected = "the run goes to its end";
    finding.seen = std::string(OutcomeName(outcome.kind)) +
                   (outcome.reason.empty() ? "" : ": " + outcome.reason);
    finding.message = "one of two runs that must agree ended early";
    result->judged.insert(finding.requirement);
    result->findings.push_back(std::move(finding));
  }
}

// What differs between the run and one that it must agree with.
CheckResult CompareWithPartner(const Run& run, const PartnerRun& other) {
  std::string ignored;
  if (AllUnsupported(other.run, &ignored)) return {};
  const Partner& partner = *other.partner;
  CheckResult result = CompareResults(run, other.run, partner.requirement);
  AddEarlyEnds(other, &result);
  if (partner.sequences) {
    result.Merge(CompareCollectiveSequences(
        run, other.run, partner.requirement,
        partner.requirement == "PG-08" ? TwinAsReducingGroup : CommLabel()));
  }
  for (Finding& finding : result.findings)
    finding.message += "; the other run is this case " + partner.why;
  return result;
}

}  // namespace

Verdict JudgeRun(const Case& c, const Run& run) {
  Verdict verdict;
  if (AllUnsupported(run, &verdict.reason)) {
    verdict.outcome = Outcome::kUnsupported;
    return verdict;
  }
  std::vector<OracleRun> oracles;
  if (c.illegal.empty()) {
    for (size_t i = 0; i < c.instances.size(); ++i) oracles.push_back(RunOracle(c, i));
  }
  Run evidence{&c, run.traces, run.outcomes, {}};
  for (const OracleRun& oracle : oracles) evidence.oracles.push_back(&oracle);
  verdict.result = CheckAll(evidence);
  if (!verdict.result.findings.empty()) {
    verdict.outcome = Outcome::kFail;
  } else if (verdict.result.judged.empty()) {
    verdict.outcome = Outcome::kNotCheckable;
    verdict.reason = FirstReason(verdict.result);
  } else {
    verdict.outcome = Outcome::kPass;
  }
  return verdict;
}

Verdict JudgeWithPartners(Verdict alone, const Run& run, const std::vector<PartnerRun>& partners) {
  for (const PartnerRun& other : partners) alone.result.Merge(CompareWithPartner(run, other));
  if (!alone.result.findings.empty()) alone.outcome = Outcome::kFail;
  return alone;
}

Verdict NothingRecorded() {
  Verdict verdict;
  verdict.outcome = Outcome::kNotCheckable;
  verdict.reason = "nothing was recorded (--level off)";
  return verdict;
}

}  // namespace shardproof
