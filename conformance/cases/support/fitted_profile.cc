#include "conformance/cases/support/fitted_profile.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "conformance/cases/combinations.h"
#include "conformance/cases/factor_space.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

const CaseFactors* SpaceNamed(const std::vector<CaseFactors>& spaces, const std::string& name) {
  for (const CaseFactors& space : spaces) {
    if (space.name == name) return &space;
  }
  return nullptr;
}

int64_t CombinationsOf(const CoveringProblem& problem, int strength) {
  return CombinationTable(problem, strength, {}).possible();
}

}  // namespace

const char* SpaceOf(const Case& c) {
  switch (SpaceCounting(c)) {
    case Space::kDense:
      return "strategies";
    case Space::kSchedule:
      return "experts";
    case Space::kLayerWise:
      return "layer_wise";
    case Space::kPipeline:
      return "pipelines";
  }
  throw std::logic_error("a space without a name");
}

CoveringRow PlainestRow(const CaseFactors& space, const CoveringProblem& problem, const Taken& of,
                        int32_t world) {
  const std::vector<Factor>& factors = problem.factors;
  const ValueMask mask = MaskOf(space, of.values);
  CoveringRow row = PlainValues(space, of);
  int of_world = 0, value = 0;
  for (size_t factor = 0; factor < factors.size(); ++factor) {
    const auto taken = std::find(mask[factor].begin(), mask[factor].end(), true);
    if (row[factor] < 0) row[factor] = static_cast<int>(taken - mask[factor].begin());
    if (factors[factor].name != "world") continue;
    of_world = static_cast<int>(factor);
    value = row[factor];
    for (size_t i = 0; i < mask[factor].size(); ++i) {
      if (mask[factor][i] && factors[factor].values[i] == std::to_string(world))
        value = static_cast<int>(i);
    }
  }
  const auto nearest = NearestRow(problem, mask, row, of_world, value);
  if (nearest) return *nearest;
  return RandomRow(problem, 1);
}

std::vector<Case> FittedCases(const std::vector<CaseFactors>& spaces, const Supported& supported,
                              int strength, int32_t world, uint64_t seed) {
  std::vector<Case> cases;
  std::set<std::string> ids;
  for (const CaseFactors& space : spaces) {
    const auto taken = supported.find(space.name);
    if (taken == supported.end()) continue;
    const auto some = TakenOf(space, taken->second);
    if (!some) continue;
    CoveringOptions options{strength, seed, {}, 12};
    options.base = PlainestRow(space, *some, taken->second, world);
    options.most_changes = taken->second.changes;
    for (const CoveringRow& row : CoveringArray(*some, options)) {
      Case c = space.make(row, seed);
      if (ids.insert(Id(c)).second) cases.push_back(std::move(c));
    }
  }
  return cases;
}

bool Fits(const std::vector<CaseFactors>& spaces, const Supported& supported, const Case& c) {
  if (!c.illegal.empty() || c.instances.size() != 1) return true;
  const CaseFactors* space = SpaceNamed(spaces, SpaceOf(c));
  const auto taken = supported.find(SpaceOf(c));
  if (space == nullptr || taken == supported.end()) return false;
  const ValueMask mask = MaskOf(*space, taken->second.values);
  const CoveringRow row = space->row_of(c);
  for (size_t factor = 0; factor < row.size(); ++factor) {
    if (row[factor] >= 0 && !At(mask[factor], row[factor])) return false;
  }
  return !HasExcluded(*space, taken->second, row);
}

bool IsOfTaken(const std::vector<CaseFactors>& spaces, const Supported& supported, const Case& c) {
  if (!c.illegal.empty() || c.instances.size() != 1 || !Fits(spaces, supported, c)) return false;
  const CaseFactors& space = *SpaceNamed(spaces, SpaceOf(c));
  const CoveringRow row = space.row_of(c);
  return std::find(row.begin(), row.end(), -1) == row.end() && space.make(row, c.seed) == c;
}

std::vector<std::string> FittedCoverage(const std::vector<CaseFactors>& spaces,
                                        const Supported& supported, const std::vector<Case>& judged,
                                        int strength) {
  std::vector<std::string> lines;
  for (const CaseFactors& space : spaces) {
    const std::string of =
        std::string(strength == 2 ? "pairs" : "triples") + " of " + space.name + ": ";
    const std::string all = std::to_string(CombinationsOf(*space.problem, strength));
    const auto taken = supported.find(space.name);
    const auto some = taken == supported.end() ? std::nullopt : TakenOf(space, taken->second);
    if (!some) {
      lines.push_back(of + "none of " + all + ": no case of them is taken here");
      continue;
    }
    std::vector<CoveringRow> rows;
    for (const Case& c : judged) {
      if (c.instances.size() == 1 && c.illegal.empty() && SpaceOf(c) == space.name)
        rows.push_back(space.row_of(c));
    }
    const CoverageCount count = CountCoverage(*some, rows, strength);
    lines.push_back(of + std::to_string(count.covered) + " judged, " +
                    std::to_string(count.possible) + " possible with what the engine takes, " +
                    all + " in all");
    for (const std::string& one : count.missing) lines.back() += "; not judged: " + one;
  }
  return lines;
}

}  // namespace shardproof
