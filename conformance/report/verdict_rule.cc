#include "conformance/report/verdict_rule.h"

#include <algorithm>
#include <map>

namespace shardproof {

namespace {

struct Weighed {
  bool open = false;    // a finding that nobody waived
  bool waived = false;  // a finding that somebody did
  bool judged = false;
  bool missing = false;
};

Status StatusOf(const Weighed& found) {
  if (found.open) return Status::kFail;
  if (!found.judged && !found.waived) return Status::kNotCheckable;
  if (found.missing) return Status::kPartial;
  return found.waived ? Status::kWaived : Status::kPass;
}

bool AnyMissing(const std::vector<NotCheckable>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const NotCheckable& row) {
    return row.kind == NotCheckable::Kind::kMissing;
  });
}

bool Judged(Status status) {
  return status == Status::kPass || status == Status::kPartial || status == Status::kWaived;
}

}  // namespace

Status StatusOf(const CheckResult& result) {
  return StatusOf(Weighed{!result.findings.empty(), false, !result.judged.empty(),
                          AnyMissing(result.not_checkable)});
}

Status StatusOf(const CaseReport& report) {
  Weighed found{false, false, !report.judged.empty(), AnyMissing(report.not_checkable)};
  for (const ReportedFinding& row : report.findings)
    (row.waived_because.empty() ? found.open : found.waived) = true;
  return StatusOf(found);
}

Decision Decide(const RunReport& report) {
  const std::map<Status, int> counts = Count(report);
  if (counts.contains(Status::kSuiteError)) return {RunVerdict::kSuiteFailed, ""};
  if (counts.contains(Status::kFail) || !report.problems.empty())
    return {RunVerdict::kNotConformant, ""};
  if (report.cases.empty()) return {RunVerdict::kNotConformant, "there was no case to judge"};
  const auto judged = [](const CaseReport& c) { return Judged(c.status); };
  if (std::none_of(report.cases.begin(), report.cases.end(), judged))
    return {RunVerdict::kNotConformant, "nothing was judged"};
  const bool legal = std::any_of(report.cases.begin(), report.cases.end(),
                                 [](const CaseReport& c) { return c.legal; });
  const bool trained = std::any_of(report.cases.begin(), report.cases.end(),
                                   [&](const CaseReport& c) { return c.legal && judged(c); });
  if (legal && !trained)
    return {RunVerdict::kNotConformant, "no legal case was judged, only refusals of illegal ones"};
  const bool partial = counts.contains(Status::kPartial) || counts.contains(Status::kNotCheckable);
  return {partial ? RunVerdict::kWhereJudged : RunVerdict::kConformant, ""};
}

const char* VerdictName(RunVerdict verdict) {
  static constexpr const char* kNames[] = {"conformant", "conformant where judged",
                                           "not conformant", "suite failed"};
  return kNames[static_cast<size_t>(verdict)];
}

int ExitCode(const RunReport& report) {
  switch (Decide(report).verdict) {
    case RunVerdict::kConformant:
      return 0;
    case RunVerdict::kWhereJudged:
      return report.allow_partial ? 0 : 4;
    case RunVerdict::kNotConformant:
      return 1;
    case RunVerdict::kSuiteFailed:
      break;
  }
  return 2;
}

}  // namespace shardproof
