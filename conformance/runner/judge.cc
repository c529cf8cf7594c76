#include "conformance/runner/judge.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/base/node_grads.h"
#include "conformance/checks/base/one_row.h"
#include "conformance/checks/check_all.h"
#include "conformance/checks/declined.h"
#include "conformance/checks/must_fail.h"
#include "conformance/checks/numerics/results_due.h"
#include "conformance/checks/program/describe.h"
#include "conformance/checks/robustness/answers.h"
#include "conformance/checks/robustness/cut_save.h"
#include "conformance/checks/robustness/left_behind.h"
#include "conformance/checks/robustness/robustness.h"
#include "conformance/checks/robustness/starved.h"
#include "conformance/common/at.h"
#include "conformance/oracle/oracle.h"
#include "conformance/report/html/drawing.h"
#include "conformance/report/verdict_rule.h"
#include "conformance/requirements/registry.h"
#include "conformance/runner/with_partner.h"

namespace shardproof {

namespace {

std::string FirstReason(const CheckResult& result) {
  return result.not_checkable.empty()
             ? "no requirement applied"
             : result.not_checkable.front().requirement + ": " + result.not_checkable.front().why;
}

// Whether there are results to compare.
bool Published(const Run& run) {
  return std::any_of(run.traces.begin(), run.traces.end(), [](const Trace& trace) {
    return std::any_of(trace.events.begin(), trace.events.end(),
                       [](const Event& event) { return event.kind == EventKind::kPublish; });
  });
}

void Settle(Verdict& verdict) {
  KeepOneRowEach(verdict.result);
  verdict.outcome = StatusOf(verdict.result, WarningsOf(verdict.result));
  if (verdict.outcome == Outcome::kNotCheckable) verdict.reason = FirstReason(verdict.result);
}

// What another run of the case would show.
void LeaveToPartners(const Case& c, CheckResult& result) {
  if (!c.before.empty() && c.before.front().killed) {
    result.not_checkable.push_back(
        {kCutSave, "only run --fabric sim cuts saves short", NotCheckable::Kind::kNotAsked});
  }
  if (c.starved) {
    result.not_checkable.push_back({kStarved, "only run --fabric sim runs the case without memory",
                                    NotCheckable::Kind::kNotAsked});
  }
  for (const Partner& partner : PartnersToRun(c)) {
    if (result.judged.contains(partner.requirement)) continue;
    result.not_checkable.push_back({partner.requirement,
                                    "it takes a second run to compare with, which only run "
                                    "--fabric sim makes, at --level digests or bytes",
                                    NotCheckable::Kind::kNotAsked});
  }
}

// Nodes may add to gradients in the parameters' dtype. With routed experts the sums then depend on
// which samples a rank's rows come from: no oracle has them.
std::vector<OracleRun> OraclesOf(const Case& c, const Run& run, Numbers numbers) {
  std::vector<OracleRun> oracles;
  if (numbers == Numbers::kNotKept)
    return c.illegal.empty() ? ResultsDue(Analysis(run)) : std::vector<OracleRun>();
  for (size_t i = 0; c.illegal.empty() && i < c.instances.size(); ++i) {
    OracleOptions options;
    options.bf16_node_grads = NodesAddInBf16(c, i, run.traces);
    if (options.bf16_node_grads && c.instances[i].model.moe.experts > 0) return {};
    oracles.push_back(RunOracle(c, i, options));
  }
  return oracles;
}

// These families see only results (their other rows are judged all the same).
bool ComparesNumbers(const Registry& registry, const std::string& id) {
  if (id == "FS-34" || id == "TP-05" || id == "TP-06") return true;
  const Requirement* row = registry.Find(id);
  return row != nullptr &&
         std::find(row->checks.begin(), row->checks.end(), "numerics") != row->checks.end();
}

// Of rows that compare numbers nothing is missing where no numbers are kept.
void LeaveNumbers(CheckResult& result) {
  const Registry registry = Registry::Builtin();
  for (NotCheckable& row : result.not_checkable) {
    if (row.kind != NotCheckable::Kind::kMissing || !ComparesNumbers(registry, row.requirement))
      continue;
    row.kind = NotCheckable::Kind::kNotAsked;
    row.why = "it compares numbers, and the dry fabric keeps none: run the case on sim";
  }
}

bool FailureIsAsked(const Case& c) {
  return c.illegal.empty() && c.instances.size() == 1 && MustFail(c.instances.front());
}

// How a picture calls an event: of computations and results the case knows the names.
std::string DrawnName(const Analysis& analysis, const Trace& trace, int64_t index) {
  const Event& event = At(trace.events, index);
  switch (event.kind) {
    case EventKind::kCallBegin:
      return std::string(trace.Text(event.text)) + " begins";
    case EventKind::kCallEnd:
      return std::string(trace.Text(event.text)) + " ends";
    case EventKind::kMark:
    case EventKind::kRefused:
      return analysis.Describe(trace.rank, index);
    case EventKind::kCompute:
    case EventKind::kPublish:
      if (analysis.has_case()) return analysis.Describe(trace.rank, index);
      break;
    default:
      break;
  }
  const graph::Program* const program = analysis.lowered().program();
  return graph::Describe(trace, event, program == nullptr ? graph::Names{} : program->names);
}

std::map<size_t, std::string> DrawingsOf(const Run& run, const CheckResult& result) {
  if (result.findings.empty()) return {};
  const Analysis analysis(run);
  return DrawFindings(run.traces, result.findings, [&](int32_t rank, int64_t index) {
    return DrawnName(analysis, At(run.traces, rank), index);
  });
}

}  // namespace

std::set<std::string> WarningsOf(const CheckResult& result) {
  if (result.findings.empty()) return {};  // most runs; the registry is not read for them
  std::set<std::string> found;
  for (const Finding& finding : result.findings) found.insert(finding.requirement);
  std::erase_if(found, [should = Registry::Builtin().Ids(RequirementLevel::kShould)](
                           const std::string& id) { return !should.contains(id); });
  return found;
}

Verdict JudgeRun(const Case& c, const Run& run, Numbers numbers) {
  Verdict verdict;
  std::string declined;
  Run evidence{&c, run.traces, run.outcomes, {}, run.left_behind};
  const bool declines = Declines(evidence, &declined);
  std::vector<OracleRun> oracles;
  if (!declines || Published(run)) oracles = OraclesOf(c, evidence, numbers);
  for (const OracleRun& oracle : oracles) evidence.oracles.push_back(&oracle);
  if (declines) {
    verdict.result = CheckDeclined(evidence);
  } else {
    verdict.result = FailureIsAsked(c) ? CheckMustFail(evidence) : CheckAll(evidence);
  }
  if (numbers == Numbers::kNotKept) LeaveNumbers(verdict.result);
  LeaveToPartners(c, verdict.result);
  Settle(verdict);
  verdict.drawings = DrawingsOf(evidence, verdict.result);
  if (declines && verdict.outcome != Outcome::kFail) {  // nothing is wrong with what was run
    verdict.outcome = Outcome::kUnsupported;
    verdict.reason = declined;
    verdict.result.judged.clear();
    verdict.result.not_checkable.clear();
  }
  return verdict;
}

bool IsGood(const Verdict& verdict) {
  return verdict.outcome == Outcome::kPass || verdict.outcome == Outcome::kPartial;
}

void NameLeg(size_t leg, const Case& c, Verdict* verdict) {
  Case alone = c;
  alone.before.clear();
  const std::string name = "leg " + std::to_string(leg + 1) + ", " + Id(alone);
  for (Finding& finding : verdict->result.findings) finding.message += "; in " + name;
  if (!verdict->reason.empty()) verdict->reason = name + ": " + verdict->reason;
}

std::optional<Finding> EndedBadly(const Run& run, const std::string& requirement) {
  for (size_t rank = 0; rank < run.outcomes.size(); ++rank) {
    const EngineOutcome& outcome = run.outcomes[rank];
    if (outcome.kind == EngineOutcome::Kind::kOk) continue;
    Finding finding;
    finding.requirement = requirement;
    finding.rank = static_cast<int>(rank);
    finding.operation = outcome.call;
    finding.expected = "the run ends well, as the one that it must agree with did";
    finding.seen = OutcomeName(outcome.kind);
    if (!outcome.reason.empty()) finding.seen += ": " + outcome.reason;
    finding.message = "of two runs that must agree one did not come to its end";
    return finding;
  }
  return std::nullopt;
}

Verdict JudgeWithPartners(Verdict alone, const Run& run, const std::vector<PartnerRun>& partners) {
  for (const PartnerRun& other : partners) {
    std::erase_if(alone.result.not_checkable, [&](const NotCheckable& row) {
      return row.kind == NotCheckable::Kind::kNotAsked &&
             row.requirement == other.partner->requirement;
    });
  }
  for (const PartnerRun& other : partners) {
    const size_t before = alone.result.findings.size();
    alone.result.Merge(CompareWithPartner(run, other));
    for (size_t i = before; i < alone.result.findings.size() && !other.partner->new_timing; ++i)
      alone.partners[i] = Id(other.partner->spec);
    alone.result.Merge(JudgeLeftBehind(other.run));
  }
  Settle(alone);
  alone.drawings = DrawingsOf(run, alone.result);
  return alone;
}

Verdict JudgeWithFurther(Verdict alone, const std::string& requirement, CheckResult further) {
  std::erase_if(alone.result.not_checkable,
                [&](const NotCheckable& row) { return row.requirement == requirement; });
  alone.result.Merge(std::move(further));
  Settle(alone);
  return alone;
}

Verdict JudgeForeign(Run run) {
  const Run foreign{nullptr, std::move(run.traces), std::move(run.outcomes), {}};
  Verdict verdict = VerdictOn(CheckAll(foreign));
  verdict.drawings = DrawingsOf(foreign, verdict.result);
  return verdict;
}

Verdict VerdictOn(CheckResult result) {
  Verdict verdict;
  verdict.result = std::move(result);
  Settle(verdict);
  return verdict;
}

Verdict NothingRecorded() {
  Verdict verdict;
  verdict.outcome = Outcome::kNotCheckable;
  verdict.reason = "nothing was recorded (--level off)";
  return verdict;
}

}  // namespace shardproof
