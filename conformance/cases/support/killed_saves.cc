#include "conformance/cases/support/killed_saves.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "conformance/cases/support/fitted_profile.h"
#include "conformance/cases/support/reshard.h"
#include "conformance/cases/support/reshard_parts.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

// Space, factor, value.
using Value = std::tuple<std::string, std::string, std::string>;

std::set<Value> ValuesOfLeg(const std::vector<CaseFactors>& spaces, const Case& leg) {
  std::set<Value> values;
  const std::string name = SpaceOf(leg);
  for (const CaseFactors& space : spaces) {
    if (space.name != name) continue;
    const CoveringRow row = space.row_of(leg);
    for (size_t f = 0; f < row.size(); ++f) {
      const Factor& factor = space.problem->factors[f];
      if (row[f] < 0 || Follows(factor.name)) continue;
      if (MayChangeBetweenLegs(factor.name) || IsTrained(factor.name))
        values.insert({name, factor.name, At(factor.values, row[f])});
    }
  }
  return values;
}

// Saved twice, or once, as `saver`, and loaded as `loader`.
std::optional<Case> Killed(const Case& saver, const Case& loader, const char* saves) {
  Case c = loader;
  c.before = {saver};
  c.before.front().before.clear();
  c.before.front().killed = true;
  c.before.front().instances.front().script = saves;
  c.instances.front().script = "ltsle";
  try {
    Derive(c);
  } catch (const std::exception&) {  // with evaluation, or a third step, it could not be asked
    return std::nullopt;
  }
  return c.illegal.empty() ? std::optional(c) : std::nullopt;
}

}  // namespace

std::vector<Case> KilledSaves(const std::vector<CaseFactors>& spaces, const Supported& supported,
                              int32_t world, uint64_t seed) {
  constexpr size_t kOnce = 4, kElsewhere = 3;  // every so many are saved once, loaded elsewhere
  std::vector<Case> cases;
  std::set<Value> seen;
  for (const Case& c : ReshardCases(spaces, supported, world, seed)) {
    for (const auto& [saver, other] :
         {std::pair{c.before[0], c.before[1]}, {c.before[1], c.before[0]}}) {
      const std::set<Value> values = ValuesOfLeg(spaces, saver);
      if (std::includes(seen.begin(), seen.end(), values.begin(), values.end())) continue;
      const size_t place = cases.size() + 1;
      const auto killed = Killed(saver, place % kElsewhere == 0 ? other : saver,
                                 place % kOnce == 0 ? "ts" : "tstts");
      if (!killed) continue;
      seen.insert(values.begin(), values.end());
      cases.push_back(*killed);
    }
  }
  return cases;
}

std::vector<std::string> KilledSavesCoverage(const std::vector<CaseFactors>& spaces,
                                             const std::vector<Case>& cases,
                                             const std::vector<Case>& judged) {
  constexpr size_t kMostOpen = 5;
  const auto by_space = [&](const std::vector<Case>& some) {
    std::map<std::string, std::set<Value>> values;
    for (const Case& c : some) {
      for (const Value& value : ValuesOfLeg(spaces, LegsOf(c).front()))
        values[std::get<0>(value)].insert(value);
    }
    return values;
  };
  std::vector<std::string> lines;
  auto done = by_space(judged);
  for (const auto& [space, asked] : by_space(cases)) {
    std::vector<Value> open;
    std::set_difference(asked.begin(), asked.end(), done[space].begin(), done[space].end(),
                        std::back_inserter(open));
    std::string line = "values of " + space +
                       " in saves that were killed: " + std::to_string(asked.size() - open.size()) +
                       " judged of " + std::to_string(asked.size());
    for (size_t i = 0; i < open.size() && i < kMostOpen; ++i) {
      line += (i == 0 ? "; open: " : ", ") + std::get<1>(open[i]) + " " + std::get<2>(open[i]);
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace shardproof
