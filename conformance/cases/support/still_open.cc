#include "conformance/cases/support/still_open.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "conformance/cases/combinations.h"
#include "conformance/cases/support/fitted_profile.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

// One space of which the engine takes something.
struct OpenSpace {
  const CaseFactors* space = nullptr;
  ValueMask mask;
  CoveringProblem problem;         // of what it takes
  std::vector<CoveringRow> plain;  // to start from: taken ones, or the plainest
  std::vector<CoveringRow> judged;
};

std::vector<OpenSpace> SpacesTaken(const std::vector<CaseFactors>& spaces,
                                   const Supported& supported, const TakenRows& taken,
                                   const std::vector<Case>& judged, int32_t world) {
  std::vector<OpenSpace> all;
  for (const CaseFactors& space : spaces) {
    const auto takes = supported.find(space.name);
    if (takes == supported.end()) continue;
    OpenSpace one{&space, MaskOf(space, takes->second.values), {}, {}, {}};
    auto some = TakenOf(space, takes->second);
    if (!some) continue;
    one.problem = *std::move(some);
    if (const auto rows = taken.find(space.name); rows != taken.end()) one.plain = rows->second;
    if (one.plain.empty()) one.plain = {PlainestRow(space, one.problem, takes->second, world)};
    for (const Case& c : judged) {
      if (c.instances.size() == 1 && c.illegal.empty() && space.name == SpaceOf(c))
        one.judged.push_back(space.row_of(c));
    }
    all.push_back(std::move(one));
  }
  return all;
}

bool Has(const CoveringRow& row, const std::vector<int>& factors, const std::vector<int>& values) {
  for (size_t i = 0; i < factors.size(); ++i) {
    if (At(row, factors[i]) != values[i]) return false;
  }
  return true;
}

// A row with these values that is near to one of the plain ones: one that has the first value, if
// there is one. Nothing: there is none.
std::optional<CoveringRow> RowWith(const OpenSpace& space, const std::vector<int>& factors,
                                   const std::vector<int>& values) {
  std::vector<CoveringRow> starts = space.plain;
  std::stable_partition(starts.begin(), starts.end(), [&](const CoveringRow& row) {
    return At(row, factors.front()) == values.front();
  });
  for (CoveringRow row : starts) {
    bool reached = true;
    for (size_t i = 0; i < factors.size() && reached; ++i) {
      if (At(row, factors[i]) == values[i]) continue;
      const auto next = NearestRow(space.problem, space.mask, row, factors[i], values[i]);
      reached = next.has_value();
      if (reached) row = *next;
    }
    if (reached && Has(row, factors, values)) return row;
  }
  return std::nullopt;
}

}  // namespace

std::vector<OpenValue> OpenValues(const std::vector<CaseFactors>& spaces,
                                  const Supported& supported, const TakenRows& taken,
                                  const std::vector<Case>& judged, int32_t world, uint64_t seed) {
  std::vector<OpenValue> open;
  for (const OpenSpace& space : SpacesTaken(spaces, supported, taken, judged, world)) {
    const std::vector<Factor>& factors = space.space->problem->factors;
    for (size_t factor = 0; factor < space.mask.size(); ++factor) {
      for (size_t value = 0; value < space.mask[factor].size(); ++value) {
        const std::vector<int> of{static_cast<int>(factor)}, is{static_cast<int>(value)};
        const bool known = std::any_of(space.judged.begin(), space.judged.end(),
                                       [&](const CoveringRow& row) { return Has(row, of, is); });
        if (!space.mask[factor][value] || known) continue;
        if (const auto row = RowWith(space, of, is))
          open.push_back({space.space->name, factors[factor].name, factors[factor].values[value],
                          space.space->make(*row, seed)});
      }
    }
  }
  return open;
}

std::vector<Case> OpenCombinations(const std::vector<CaseFactors>& spaces,
                                   const Supported& supported, const TakenRows& taken,
                                   const std::vector<Case>& judged, int strength, int32_t world,
                                   uint64_t seed, size_t most) {
  std::vector<Case> cases;
  for (const OpenSpace& space : SpacesTaken(spaces, supported, taken, judged, world)) {
    CombinationTable table(space.problem, strength, {});
    for (const CoveringRow& row : space.judged) table.Cover(row);
    for (const Combination& one : table.OpenOnes(static_cast<size_t>(table.open()))) {
      if (cases.size() == most) return cases;
      const auto row = RowWith(space, one.factors, one.values);
      if (row && table.Cover(*row) > 0) cases.push_back(space.space->make(*row, seed));
    }
  }
  return cases;
}

}  // namespace shardproof
