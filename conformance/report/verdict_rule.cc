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
  bool bounded = false;
};

Status StatusOf(const Weighed& found) {
  if (found.open) return Status::kFail;
  if (!found.judged && !found.waived) return Status::kNotCheckable;
  if (found.missing) return Status::kPartial;
  if (found.waived) return Status::kWaived;
  return found.bounded ? Status::kBounded : Status::kPass;
}

bool Any(NotCheckable::Kind kind, const std::vector<NotCheckable>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const NotCheckable& row) { return row.kind == kind; });
}

Weighed RowsOf(const std::vector<NotCheckable>& rows, bool judged) {
  Weighed found;
  found.judged = judged;
  found.missing = Any(NotCheckable::Kind::kMissing, rows);
  found.bounded = Any(NotCheckable::Kind::kBounded, rows);
  return found;
}

bool Judged(Status status) {
  return status == Status::kPass || status == Status::kPartial || status == Status::kWaived ||
         status == Status::kBounded;
}

}  // namespace

Status StatusOf(const CheckResult& result, const std::set<std::string>& warnings) {
  Weighed found = RowsOf(result.not_checkable, !result.judged.empty());
  found.open =
      std::any_of(result.findings.begin(), result.findings.end(),
                  [&](const Finding& finding) { return !warnings.contains(finding.requirement); });
  return StatusOf(found);
}

Status StatusOf(const CaseReport& report) {
  Weighed found = RowsOf(report.not_checkable, !report.judged.empty());
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
  const bool elsewhere = !report.shard.empty() && !report.taken_elsewhere.empty();
  const auto judged = [](const CaseReport& c) { return Judged(c.status); };
  const bool none = std::none_of(report.cases.begin(), report.cases.end(), judged);
  if (none && elsewhere)
    return {RunVerdict::kNothingHere,
            "the engine takes none of this shard, and " + report.taken_elsewhere + " of another"};
  if (report.cases.empty()) return {RunVerdict::kNotConformant, "there was no case to judge"};
  if (none) return {RunVerdict::kNotConformant, "nothing was judged"};
  const bool legal = std::any_of(report.cases.begin(), report.cases.end(),
                                 [](const CaseReport& c) { return c.legal; });
  const bool trained = std::any_of(report.cases.begin(), report.cases.end(),
                                   [&](const CaseReport& c) { return c.legal && judged(c); });
  if (legal && !trained && !elsewhere)
    return {RunVerdict::kNotConformant, "no legal case was judged, only refusals of illegal ones"};
  const bool partial = counts.contains(Status::kPartial) || counts.contains(Status::kNotCheckable);
  if (partial || !report.cut_short.empty()) return {RunVerdict::kWhereJudged, report.cut_short};
  const bool bounded = counts.contains(Status::kBounded);
  return {bounded ? RunVerdict::kWithinBounds : RunVerdict::kConformant, ""};
}

bool IsTaken(const CaseReport& report) {
  return report.legal && (Judged(report.status) || report.status == Status::kFail);
}

const char* VerdictName(RunVerdict verdict) {
  static constexpr const char* kNames[] = {"nothing to judge",         "conformant",
                                           "conformant within bounds", "conformant where judged",
                                           "not conformant",           "suite failed"};
  return kNames[static_cast<size_t>(verdict)];
}

RunVerdict VerdictNamed(const std::string& name) {
  for (int i = 0; i < static_cast<int>(RunVerdict::kSuiteFailed); ++i) {
    if (name == VerdictName(static_cast<RunVerdict>(i))) return static_cast<RunVerdict>(i);
  }
  return RunVerdict::kSuiteFailed;
}

int ExitCode(RunVerdict verdict, bool allow_partial) {
  switch (verdict) {
    case RunVerdict::kNothingHere:
    case RunVerdict::kConformant:
    case RunVerdict::kWithinBounds:
      return 0;
    case RunVerdict::kWhereJudged:
      return allow_partial ? 0 : 4;
    case RunVerdict::kNotConformant:
      return 1;
    case RunVerdict::kSuiteFailed:
      break;
  }
  return 2;
}

int ExitCode(const RunReport& report) {
  return ExitCode(Decide(report).verdict, report.allow_partial);
}

}  // namespace shardproof
