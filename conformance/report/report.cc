#include "conformance/report/report.h"

#include <algorithm>

namespace shardproof {

const char* StatusName(Status status) {
  static constexpr const char* kNames[] = {"pass",     "fail",          "waived",     "unsupported",
                                           "disabled", "not-checkable", "suite-error"};
  return kNames[static_cast<size_t>(status)];
}

std::map<Status, int> Count(const RunReport& report) {
  std::map<Status, int> counts;
  for (const CaseReport& c : report.cases) ++counts[c.status];
  return counts;
}

bool Conformant(const RunReport& report) {
  const std::map<Status, int> counts = Count(report);
  return report.problems.empty() && !counts.contains(Status::kFail) &&
         !counts.contains(Status::kSuiteError) &&
         (counts.contains(Status::kPass) || counts.contains(Status::kWaived));
}

int ExitCode(const RunReport& report) {
  if (Count(report).contains(Status::kSuiteError)) return 2;
  return Conformant(report) ? 0 : 1;
}

std::string LastLine(const RunReport& report) {
  std::string text = Conformant(report) ? "conformant:" : "not conformant:";
  const std::map<Status, int> counts = Count(report);
  const char* comma = " ";
  for (const auto& [status, n] : counts) {
    text += comma + std::to_string(n) + " " + StatusName(status);
    comma = ", ";
  }
  if (counts.empty()) text += " no case was judged";
  if (!report.problems.empty()) {
    text += comma + std::to_string(report.problems.size()) + " waiver problem" +
            (report.problems.size() == 1 ? "" : "s");
  }
  return text;
}

}  // namespace shardproof
