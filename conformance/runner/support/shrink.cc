#include "conformance/runner/support/shrink.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "conformance/cases/support/simpler_cases.h"

namespace shardproof {
namespace {

constexpr ptrdiff_t kFewTokens = 6;
constexpr size_t kMostStarts = 3;

ptrdiff_t TokensOf(const std::string& id) {
  return 1 + std::ranges::count_if(id, [](char c) { return c == '.' || c == '+'; });
}
bool IsSmaller(const std::string& a, const std::string& b) {
  return std::pair(TokensOf(a), a.size()) < std::pair(TokensOf(b), b.size());
}

// The place of the first of these cases with that cause, whose report takes the place of what has
// been found so far.
std::optional<size_t> Step(const std::vector<Case>& simpler, const JudgeCases& judge,
                           Shrunk* found) {
  const std::string cause = CauseOf(found->report);
  const auto has_it = [&](const CaseReport& report) { return CauseOf(report) == cause; };
  std::vector<CaseReport> reports = judge(simpler, has_it);
  found->runs += static_cast<int>(reports.size());
  if (reports.empty() || !has_it(reports.back())) return std::nullopt;
  found->report = std::move(reports.back());
  return reports.size() - 1;
}

// Shortest ids first, but one of each space before a second of any: a space has features that all
// of its cases need.
void SortStarts(std::vector<FailedDraw>* failed) {
  std::ranges::sort(*failed, {}, [](const FailedDraw& one) {
    return std::pair(one.report.id.size(), one.drawn.seed);
  });
  std::set<std::string> spaces;
  std::vector<FailedDraw> starts, others;
  for (FailedDraw& one : *failed) {
    const bool first = spaces.insert(one.drawn.from->space.name).second;
    (first ? starts : others).push_back(std::move(one));
  }
  std::ranges::move(others, std::back_inserter(starts));
  *failed = std::move(starts);
}

}  // namespace

std::string CauseOf(const CaseReport& report) {
  if (report.status != Status::kFail || report.findings.empty()) return "";
  return report.findings.front().finding.requirement;
}

Shrunk ShrinkCase(const Case& c, const CaseReport& report, const JudgeCases& judge,
                  const std::function<void(const CaseReport& smaller)>& on_step) {
  Shrunk found{report, 0, report.id};
  std::vector<Case> simpler = SimplerCases(c);
  while (const auto place = Step(simpler, judge, &found)) {
    if (on_step) on_step(found.report);
    const Case smaller = simpler[*place];
    simpler = SimplerCases(smaller);
  }
  return found;
}

Shrunk ShrinkDrawn(const DrawnCase& drawn, const CaseReport& report, const JudgeCases& judge) {
  Shrunk found{report, 0, report.id};
  DrawnCase smallest = drawn;
  for (bool goes_on = true; goes_on;) {
    const std::vector<DrawnCase> simpler = Simpler(smallest);
    std::vector<Case> cases;
    for (const DrawnCase& one : simpler) cases.push_back(MakeCase(one));
    const auto place = Step(cases, judge, &found);
    goes_on = place.has_value();
    if (goes_on) smallest = simpler[*place];
  }
  Shrunk further = ShrinkCase(MakeCase(smallest), found.report, judge);
  further.runs += found.runs;
  further.from = found.from;
  return further;
}

Shrunk ShrinkSeveral(std::vector<FailedDraw> failed, const JudgeCases& judge) {
  SortStarts(&failed);
  Shrunk smallest;
  int runs = 0;
  for (size_t i = 0; i < std::min(kMostStarts, failed.size()); ++i) {
    if (i > 0 && TokensOf(smallest.report.id) <= kFewTokens) break;
    Shrunk one = ShrinkDrawn(failed[i].drawn, failed[i].report, judge);
    runs += one.runs;
    if (i == 0 || IsSmaller(one.report.id, smallest.report.id)) smallest = std::move(one);
  }
  smallest.runs = runs;
  return smallest;
}

}  // namespace shardproof
