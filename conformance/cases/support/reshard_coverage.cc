// reshard.h's ReshardCoverage.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "conformance/cases/support/fitted_profile.h"
#include "conformance/cases/support/reshard.h"
#include "conformance/cases/support/reshard_parts.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

// Factor and its two values, as words.
using ChangeText = std::tuple<std::string, std::string, std::string>;

// By space: what changes between two legs that follow each other.
std::map<std::string, std::set<ChangeText>> ChangesOf(const std::vector<CaseFactors>& spaces,
                                                      const std::vector<Case>& cases) {
  std::map<std::string, std::set<ChangeText>> changes;
  for (const Case& c : cases) {
    std::vector<Case> legs = LegsOf(c);
    for (Case& leg : legs) leg.before.clear();
    for (size_t i = 1; i < legs.size(); ++i) {
      const std::string name = SpaceOf(legs[i]);
      for (const CaseFactors& space : spaces) {
        if (space.name != name || SpaceOf(legs[i - 1]) != name) continue;
        const CoveringRow a = space.row_of(legs[i - 1]), b = space.row_of(legs[i]);
        for (size_t f = 0; f < a.size(); ++f) {
          const Factor& factor = space.problem->factors[f];
          if (!MayChangeBetweenLegs(factor.name) || a[f] < 0 || b[f] < 0 || a[f] == b[f]) continue;
          const auto [from, to] = std::minmax(a[f], b[f]);
          changes[name].insert({factor.name, At(factor.values, from), At(factor.values, to)});
        }
      }
    }
  }
  return changes;
}

}  // namespace

std::vector<std::string> ReshardCoverage(const std::vector<CaseFactors>& spaces,
                                         const std::vector<Case>& cases,
                                         const std::vector<Case>& judged) {
  constexpr size_t kMostOpen = 5;
  std::vector<std::string> lines;
  auto done = ChangesOf(spaces, judged);
  for (const auto& [space, asked] : ChangesOf(spaces, cases)) {
    std::vector<ChangeText> open;
    std::set_difference(asked.begin(), asked.end(), done[space].begin(), done[space].end(),
                        std::back_inserter(open));
    std::string line = "changes of " + space +
                       " between save and load: " + std::to_string(asked.size() - open.size()) +
                       " judged of " + std::to_string(asked.size());
    for (size_t i = 0; i < open.size() && i < kMostOpen; ++i) {
      const auto& [factor, from, to] = open[i];
      line += (i == 0 ? "; open: " : ", ") + factor + " " + from + " and " + to;
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace shardproof
