#include "conformance/cases/support/starved_cases.h"

#include <set>

#include "conformance/cases/support/fitted_profile.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

constexpr int32_t kMostRanksStarved = 8;

// The plainest row, and beside it one for each other value: as near to it as can be.
std::vector<CoveringRow> RowsWithEachValue(const CaseFactors& space, const CoveringProblem& problem,
                                           const Taken& taken, int32_t world) {
  const ValueMask mask = MaskOf(space, taken.values);
  std::vector<CoveringRow> rows{PlainestRow(space, problem, taken, world)};
  for (size_t factor = 0; factor < mask.size(); ++factor) {
    for (size_t value = 0; value < mask[factor].size(); ++value) {
      if (!mask[factor][value]) continue;
      const auto nearest = NearestRow(problem, mask, rows.front(), static_cast<int>(factor),
                                      static_cast<int>(value));
      if (nearest && !HasExcluded(space, taken, *nearest)) rows.push_back(*nearest);
    }
  }
  return rows;
}

}  // namespace

std::vector<Case> StarvedCases(const std::vector<CaseFactors>& spaces, const Supported& supported,
                               int32_t world, uint64_t seed) {
  std::vector<Case> cases;
  std::set<std::string> ids;
  for (const CaseFactors& space : spaces) {
    const auto taken = supported.find(space.name);
    if (taken == supported.end()) continue;
    const auto problem = TakenOf(space, taken->second);
    if (!problem) continue;
    for (const CoveringRow& row : RowsWithEachValue(space, *problem, taken->second, world)) {
      Case c = space.make(row, seed);
      c.starved = true;
      if (c.world > kMostRanksStarved || !c.illegal.empty()) continue;
      if (ids.insert(Id(c)).second) cases.push_back(std::move(c));
    }
  }
  return cases;
}

std::vector<std::string> StarvedCoverage(const std::vector<CaseFactors>& spaces,
                                         const std::vector<Case>& cases,
                                         const std::vector<Case>& judged) {
  std::vector<std::string> lines;
  std::set<std::string> done;
  for (const Case& c : judged) done.insert(Id(c));
  for (const CaseFactors& space : spaces) {
    size_t asked = 0, good = 0;
    std::string open;
    for (const Case& c : cases) {
      if (SpaceOf(c) != space.name) continue;
      ++asked;
      good += done.count(Id(c));
      if (open.empty() && !done.contains(Id(c))) open = "; open: " + Id(c);
    }
    if (asked > 0) {
      lines.push_back("cases of " + space.name + " without memory: " + std::to_string(good) +
                      " judged of " + std::to_string(asked) + open);
    }
  }
  return lines;
}

}  // namespace shardproof
