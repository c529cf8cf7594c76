#include "conformance/report/report.h"

#include <set>

#include "conformance/report/verdict_rule.h"

namespace shardproof {

const char* StatusName(Status status) {
  static constexpr const char* kNames[] = {"pass",          "partial",     "fail",
                                           "waived",        "unsupported", "disabled",
                                           "not-checkable", "suite-error"};
  return kNames[static_cast<size_t>(status)];
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
      (row.kind == NotCheckable::Kind::kMissing ? missing : not_asked).insert(row.requirement);
    }
  }
  for (const std::string& id : missing) not_asked.erase(id);
  return {judged.size(), missing.size(), not_asked.size()};
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
    text += comma + std::to_string(report.problems.size()) + " waiver problem" +
            (report.problems.size() == 1 ? "" : "s");
    comma = ", ";
  }
  if (!decision.why.empty()) text += comma + decision.why;
  return text;
}

}  // namespace shardproof
