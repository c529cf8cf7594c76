#include "conformance/runner/support/shrink.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace shardproof {
namespace {

// The first of the cases with that cause takes the place of what has been found so far.
bool Step(const std::vector<DrawnCase>& simpler, const JudgeCases& judge, size_t batch,
          Shrunk* found) {
  const std::string cause = CauseOf(found->report);
  for (size_t first = 0; first < simpler.size(); first += batch) {
    std::vector<Case> cases;
    for (size_t i = first; i < std::min(first + batch, simpler.size()); ++i)
      cases.push_back(MakeCase(simpler[i]));
    std::vector<CaseReport> reports = judge(cases);
    found->runs += static_cast<int>(cases.size());
    for (size_t i = 0; i < reports.size(); ++i) {
      if (CauseOf(reports[i]) != cause) continue;
      found->drawn = simpler[first + i];
      found->report = std::move(reports[i]);
      return true;
    }
  }
  return false;
}

}  // namespace

std::string CauseOf(const CaseReport& report) {
  if (report.status != Status::kFail || report.findings.empty()) return "";
  return report.findings.front().finding.requirement;
}

Shrunk ShrinkCase(const DrawnCase& drawn, const CaseReport& report, const JudgeCases& judge,
                  size_t batch) {
  Shrunk found{drawn, report, 0};
  while (Step(Simpler(found.drawn), judge, batch, &found)) {
  }
  return found;
}

}  // namespace shardproof
