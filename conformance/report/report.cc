#include "conformance/report/report.h"

#include <algorithm>
#include <set>

#include "conformance/report/verdict_rule.h"

namespace shardproof {

const char* StatusName(Status status) {
  static constexpr const char* kNames[] = {"pass",     "partial",       "fail",
                                           "waived",   "bounded",       "unsupported",
                                           "disabled", "not-checkable", "suite-error"};
  return kNames[static_cast<size_t>(status)];
}

bool IsOpen(const ReportedFinding& row) { return row.waived_because.empty() && !row.warning; }
bool Warns(const ReportedFinding& row) { return row.waived_because.empty() && row.warning; }

std::string RunText(const RunReport& report) {
  return (report.engine.empty() ? "" : report.engine + ", ") + report.impl + " on " +
         report.fabric + ", " +
         (report.asked.empty() ? "profile " + report.profile : report.asked) + ", seed " +
         std::to_string(report.seed) + ", assurance " + report.assurance +
         (report.fault.empty() ? "" : ", fault " + report.fault);
}

std::map<Status, int> Count(const RunReport& report) {
  std::map<Status, int> counts;
  for (const CaseReport& c : report.cases) ++counts[c.status];
  return counts;
}

RequirementCounts CountRequirements(const RunReport& report) {
  std::set<std::string> judged, missing, not_asked;
  for (const CaseReport& c : report.cases) {
    judged.insert(c.judged.begin(), c.judged.end());
    for (const NotCheckable& row : c.not_checkable) {
      if (row.kind == NotCheckable::Kind::kMissing) missing.insert(row.requirement);
      if (row.kind == NotCheckable::Kind::kNotAsked) not_asked.insert(row.requirement);
    }
  }
  for (const std::string& id : missing) not_asked.erase(id);
  return {judged.size(), missing.size(), not_asked.size()};
}

std::map<std::string, int> CountWarnings(const RunReport& report) {
  std::map<std::string, int> counts;
  for (const CaseReport& c : report.cases) {
    std::set<std::string> here;
    for (const ReportedFinding& row : c.findings)
      if (Warns(row)) here.insert(row.finding.requirement);
    for (const std::string& id : here) ++counts[id];
  }
  return counts;
}

std::string LastLine(const RunReport& report) {
  const Decision decision = Decide(report);
  // A suite that failed has shown nothing; its cases are counted.
  const RunVerdict said =
      decision.verdict == RunVerdict::kSuiteFailed ? RunVerdict::kNotConformant : decision.verdict;
  std::string text = std::string(VerdictName(said)) + ":";
  const char* comma = " ";
  for (const auto& [status, n] : Count(report)) {
    text += comma + std::to_string(n) + " " + StatusName(status);
    comma = ", ";
  }
  if (!report.problems.empty()) {
    text += comma + std::to_string(report.problems.size()) + " problem" +
            (report.problems.size() == 1 ? "" : "s");
    comma = ", ";
  }
  const auto warned = std::count_if(
      report.cases.begin(), report.cases.end(),
      [](const CaseReport& c) { return std::any_of(c.findings.begin(), c.findings.end(), Warns); });
  if (warned > 0) {
    text += comma + std::to_string(warned) + (warned == 1 ? " case" : " cases") + " with warnings";
    comma = ", ";
  }
  if (!decision.why.empty()) text += comma + decision.why;
  return text;
}

}  // namespace shardproof
