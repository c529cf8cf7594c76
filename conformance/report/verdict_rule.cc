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

Status StatusOf(const CheckResult& result, const std::set<std::string>& warnings) {
  const bool open =
      std::any_of(result.findings.begin(), result.findings.end(),
                  [&](const Finding& finding) { return !warnings.contains(finding.requirement); });
  return StatusOf(Weighed{open, false, !result.judged.empty(), AnyMissing(result.not_checkable)});
}

Status StatusOf(const CaseReport& report) {
  Weighed found{false, false, !report.judged.empty(), AnyMissing(report.not_checkable)};
  for (const ReportedFinding& row : report.findings) {
    found.open = found.open || IsOpen(row);
    found.waived = found.waived || !row.waived_because.empty();
  }
  return StatusOf(found);
}

Status StatusAfter(Status before, const CaseReport& report) {
  if (before == Status::kSuiteError || before == Status::kDisabled || report.findings.empty())
    return before;
  const bool open = std::any_of(report.findings.begin(), report.findings.end(), IsOpen);
  if (before == Status::kUnsupported && !open) return before;
  return StatusOf(report);
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
