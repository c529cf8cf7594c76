#include "conformance/runner/job/job_judge.h"

#include <sstream>
#include <utility>

#include "conformance/cases/case.h"

namespace shardproof {

std::string IdsOf(const std::vector<Case>& cases) {
  std::string ids;
  for (const Case& c : cases) ids += Id(c) + "\n";
  return ids;
}

std::vector<Case> CasesOf(const std::string& ids) {
  std::vector<Case> cases;
  std::istringstream lines(ids);
  for (std::string id; std::getline(lines, id);) cases.push_back(ParseId(id));
  return cases;
}

std::vector<CaseReport> JobJudge::Lead(const std::vector<Case>& cases) {
  if (cases.empty()) return {};  // nothing is said: an empty text is the end
  Broadcast(IdsOf(cases));
  std::vector<CaseReport> reports(cases.size());
  Judge(
      cases, [&](size_t place, CaseReport report) { reports[place] = std::move(report); }, nullptr);
  return reports;
}

void JobJudge::EndLead() { Broadcast(""); }

void JobJudge::Follow() {
  for (std::string ids = Broadcast(""); !ids.empty(); ids = Broadcast(""))
    Judge(CasesOf(ids), nullptr, nullptr);
}

}  // namespace shardproof
