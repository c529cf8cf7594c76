#include "conformance/runner/judge.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "conformance/checks/check_all.h"
#include "conformance/checks/metamorphic/metamorphic.h"
#include "conformance/oracle/oracle.h"
#include "conformance/runner/partners.h"
#include "conformance/trace/writer.h"

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
    } else if (outcome.kind != EngineOutcome::Kind::kOk &&
               outcome.kind != EngineOutcome::Kind::kAborted) {
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

}  // namespace

Verdict JudgeRun(const Case& c, Run& run) {
  Verdict verdict;
  if (AllUnsupported(run, &verdict.reason)) {
    verdict.outcome = Outcome::kUnsupported;
    return verdict;
  }
  std::vector<OracleRun> oracles;
  if (c.illegal.empty()) {
    for (size_t i = 0; i < c.instances.size(); ++i) oracles.push_back(RunOracle(c, i));
  }
  run.spec = &c;
  for (const OracleRun& oracle : oracles) run.oracles.push_back(&oracle);
  verdict.result = CheckAll(run);
  run.oracles.clear();
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

namespace {

// A run that this run must agree with.
CheckResult CompareWithPartner(const Partner& partner, const Run& run, const Plugin& plugin,
                               const SimRunOptions& options) {
  SimRunOptions other = options;
  other.rank.fault.reset();
  other.rank.folder += "/partner";
  if (partner.new_schedule) {
    other.seed += 1;
    other.strategy = options.strategy == Strategy::kRandom ? Strategy::kPct : Strategy::kRandom;
  }
  const RunData data = RunOnSim(partner.spec, MakeModels(partner.spec), plugin, other);
  std::string ignored;
  if (AllUnsupported(data.run, &ignored)) return {};
  CheckResult result = CompareResults(run, data.run, partner.requirement);
  if (partner.sequences) {
    result.Merge(CompareCollectiveSequences(
        run, data.run, partner.requirement,
        partner.requirement == "PG-08" ? TwinAsReducingGroup : CommLabel()));
  }
  for (Finding& finding : result.findings)
    finding.message += "; the other run is this case " + partner.why;
  return result;
}

}  // namespace

Verdict NothingRecorded() {
  Verdict verdict;
  verdict.outcome = Outcome::kNotCheckable;
  verdict.reason = "nothing was recorded (--level off)";
  return verdict;
}

Verdict JudgeOnSim(const Case& c, const Plugin& plugin, const SimRunOptions& options) {
  try {
    const Models models = MakeModels(c);
    RunData data = RunOnSim(c, models, plugin, options);
    if (!options.trace_folder.empty()) WriteTraceFolder(data.run.traces, options.trace_folder);
    if (options.rank.level == RecordLevel::kOff) return NothingRecorded();
    Verdict verdict = JudgeRun(c, data.run);
    if (verdict.outcome == Outcome::kPass && options.rank.level >= RecordLevel::kDigests) {
      for (const Partner& partner : PartnersToRun(c)) {
        verdict.result.Merge(CompareWithPartner(partner, data.run, plugin, options));
      }
      if (!verdict.result.findings.empty()) verdict.outcome = Outcome::kFail;
    }
    verdict.result.notes.insert(verdict.result.notes.end(), data.notes.begin(), data.notes.end());
    verdict.schedules.push_back(data.schedule_hash);
    return verdict;
  } catch (const std::exception& error) {
    Verdict verdict;
    verdict.reason = error.what();
    return verdict;
  }
}

}  // namespace shardproof
