#include "conformance/cases/support/would_add.h"

#include <algorithm>
#include <set>

#include "conformance/cases/support/fitted_profile.h"

namespace shardproof {
namespace {

// Cases with the value, given that it is taken.
size_t CasesWith(const CaseFactors& space, const Supported& more, const Supported& supported,
                 size_t factor, int value, const std::vector<Case>& listed, int strength,
                 int32_t world, uint64_t seed) {
  std::set<std::string> ids;
  for (const Case& c : FittedCases({space}, more, strength, world, seed)) {
    if (space.row_of(c)[factor] == value) ids.insert(Id(c));
  }
  for (const Case& c : listed) {
    const bool of_space = c.instances.size() == 1 && SpaceOf(c) == space.name;
    if (of_space && !Fits({space}, supported, c) && Fits({space}, more, c)) ids.insert(Id(c));
  }
  return ids.size();
}

}  // namespace

std::vector<WouldAdd> WhatValuesWouldAdd(const std::vector<CaseFactors>& spaces,
                                         const Supported& supported,
                                         const std::vector<Case>& listed, int strength,
                                         int32_t world, uint64_t seed) {
  std::vector<WouldAdd> all;
  for (const CaseFactors& space : spaces) {
    const auto taken = supported.find(space.name);
    if (taken == supported.end()) continue;
    const ValueMask mask = MaskOf(space, taken->second.values);
    const SupportedValues values = ValuesOf(space, mask);
    for (size_t factor = 0; factor < mask.size(); ++factor) {
      const Factor& of = space.problem->factors[factor];
      for (size_t value = 0; value < mask[factor].size(); ++value) {
        if (mask[factor][value]) continue;
        Supported more{{space.name, taken->second}};
        more[space.name].values = values;
        more[space.name].values[of.name].insert(of.values[value]);
        const size_t cases = CasesWith(space, more, supported, factor, static_cast<int>(value),
                                       listed, strength, world, seed);
        if (cases > 0) all.push_back({space.name, of.name, of.values[value], cases});
      }
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const WouldAdd& a, const WouldAdd& b) { return a.cases > b.cases; });
  return all;
}

std::vector<std::string> WouldAddLines(const std::vector<WouldAdd>& values) {
  std::vector<std::string> spaces, lines;
  for (const WouldAdd& one : values) {
    const auto at = std::find(spaces.begin(), spaces.end(), one.space);
    const auto place = static_cast<size_t>(at - spaces.begin());
    if (at == spaces.end()) {
      spaces.push_back(one.space);
      lines.push_back("in how many cases one more value of " + one.space + " would be asked:");
    }
    lines[place] += (lines[place].ends_with(':') ? " " : ", ") + one.factor + " " + one.value +
                    " " + std::to_string(one.cases);
  }
  return lines;
}

}  // namespace shardproof
