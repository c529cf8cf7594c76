#include "conformance/cases/support/supported.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "conformance/cases/fabric_spaces.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

template <typename Space>
CaseFactors FactorsOf(const std::string& name, const Space& space) {
  return {name, &space.problem(),
          [&space](const CoveringRow& row, uint64_t seed) { return space.Make(row, seed); },
          [&space](const Case& c) { return space.RowOf(c); },
          [&space](Case& c, int factor, int value) { space.Set(c, factor, value); }};
}

std::vector<int32_t> UpTo(int ranks, std::vector<int32_t> worlds) {
  if (ranks > 0) std::erase_if(worlds, [&](int32_t world) { return world > ranks; });
  return worlds;
}

std::string Listed(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "\"" : ", \"") + value + "\"";
  return text;
}

size_t IndexOfFactor(const CaseFactors& space, const std::string& name) {
  const std::vector<Factor>& factors = space.problem->factors;
  const auto found = std::find_if(factors.begin(), factors.end(),
                                  [&](const Factor& factor) { return factor.name == name; });
  if (found == factors.end()) {
    std::vector<std::string> names;
    for (const Factor& factor : factors) names.push_back(factor.name);
    throw std::invalid_argument(space.name + " has no knob \"" + name + "\": use " + Listed(names));
  }
  return static_cast<size_t>(found - factors.begin());
}

// A combination of values that is excluded: by factor, those of which a row has one.
using Excluded = std::map<int, std::set<int>>;

Excluded ExcludedIn(const CaseFactors& space, const SupportedValues& values) {
  Excluded excluded;
  for (const auto& [name, some] : values) {
    const size_t factor = IndexOfFactor(space, name);
    const std::vector<std::string>& known = space.problem->factors[factor].values;
    std::set<int>& indices = excluded[static_cast<int>(factor)];
    for (const std::string& value : some) {
      const auto found = std::find(known.begin(), known.end(), value);
      if (found == known.end()) {
        throw std::invalid_argument(space.name + ": without: " + name + " has no value \"" + value +
                                    "\": use " + Listed(known));
      }
      indices.insert(static_cast<int>(found - known.begin()));
    }
  }
  return excluded;
}

bool Has(const CoveringRow& row, const Excluded& excluded) {
  return std::all_of(excluded.begin(), excluded.end(),
                     [&](const auto& one) { return one.second.contains(At(row, one.first)); });
}

// One relation over the factors of both.
Relation Product(const Relation& a, const Relation& b) {
  Relation both{a.factors, {}};
  both.factors.insert(both.factors.end(), b.factors.begin(), b.factors.end());
  for (const Tuple of_a : a.tuples) {
    for (const Tuple of_b : b.tuples) both.tuples.Add(of_a, of_b);
  }
  return both;
}

// The relations that have factors of the combination become one, without its tuples. REQUIRES: each
// factor has a relation. False: no tuple is left.
bool Exclude(const Excluded& excluded, CoveringProblem* problem) {
  Relation joined{{}, {{}}};
  std::vector<Relation> others;
  for (Relation& relation : problem->relations) {
    const bool of_it = std::any_of(relation.factors.begin(), relation.factors.end(),
                                   [&](const int factor) { return excluded.contains(factor); });
    if (of_it) {
      joined = Product(joined, relation);
    } else {
      others.push_back(std::move(relation));
    }
  }
  CoveringRow row(problem->factors.size(), -1);
  Relation kept{joined.factors, {}};
  for (const Tuple tuple : joined.tuples) {
    for (size_t i = 0; i < tuple.size(); ++i) At(row, joined.factors[i]) = tuple[i];
    if (!Has(row, excluded)) kept.tuples.Add(tuple);
  }
  others.push_back(std::move(kept));
  problem->relations = std::move(others);
  return !problem->relations.back().tuples.empty();
}

bool Takes(const Relation& relation, Tuple tuple, const ValueMask& mask) {
  for (size_t i = 0; i < tuple.size(); ++i) {
    if (!At(mask, relation.factors[i])[tuple[i]]) return false;
  }
  return true;
}

// In how many values the tuple differs from those here; counts up to `enough`.
size_t Changes(Tuple tuple, const std::vector<int>& here, size_t enough) {
  size_t changes = 0;
  for (size_t i = 0; i < tuple.size() && changes < enough; ++i) changes += tuple[i] != here[i];
  return changes;
}

}  // namespace

bool IsOfTheWorld(const Factor& factor) { return factor.name == "world" || factor.name == "place"; }

std::vector<CaseFactors> FactorsUpTo(int ranks, Spaces& spaces) {
  const FabricSpaces& row = SpacesOfFabric("sim");
  std::vector<CaseFactors> all;
  if (const auto worlds = UpTo(ranks, row.worlds); !worlds.empty())
    all.push_back(FactorsOf("strategies", spaces.Dense(worlds)));
  if (const auto worlds = UpTo(ranks, row.schedule_worlds); !worlds.empty())
    all.push_back(FactorsOf("experts", spaces.Schedule(worlds, row.schedule_eps)));
  if (const auto worlds = UpTo(ranks, row.layer_wise_worlds); !worlds.empty())
    all.push_back(FactorsOf("layer_wise", spaces.LayerWise(worlds)));
  if (const auto worlds = UpTo(ranks, row.pipeline_worlds); !worlds.empty())
    all.push_back(FactorsOf("pipelines", spaces.Pipeline(worlds)));
  return all;
}

ValueMask MaskOf(const CaseFactors& space, const SupportedValues& values) {
  ValueMask mask;
  for (const Factor& factor : space.problem->factors) {
    mask.emplace_back(factor.values.size(), IsOfTheWorld(factor));
    if (!IsOfTheWorld(factor)) mask.back().front() = true;
  }
  for (const auto& [name, taken] : values) {
    const size_t factor = IndexOfFactor(space, name);
    const std::vector<std::string>& known = space.problem->factors[factor].values;
    mask[factor].assign(known.size(), false);
    for (const std::string& value : taken) {
      const auto found = std::find(known.begin(), known.end(), value);
      if (found != known.end()) {
        mask[factor][static_cast<size_t>(found - known.begin())] = true;
      } else if (!IsOfTheWorld(space.problem->factors[factor])) {  // of another number of ranks
        throw std::invalid_argument(space.name + ": " + name + " has no value \"" + value +
                                    "\": use " + Listed(known));
      }
    }
  }
  return mask;
}

SupportedValues ValuesOf(const CaseFactors& space, const ValueMask& mask) {
  SupportedValues values;
  for (size_t factor = 0; factor < mask.size(); ++factor) {
    const Factor& of = space.problem->factors[factor];
    std::set<std::string>& taken = values[of.name];
    for (size_t value = 0; value < mask[factor].size(); ++value) {
      if (mask[factor][value]) taken.insert(of.values[value]);
    }
  }
  return values;
}

std::optional<CoveringProblem> Restrict(const CoveringProblem& problem, const ValueMask& mask) {
  CoveringProblem left{problem.factors, {}};
  std::vector<bool> related(problem.factors.size(), false);
  for (const Relation& relation : problem.relations) {
    Relation some{relation.factors, {}};
    for (const Tuple tuple : relation.tuples) {
      if (Takes(relation, tuple, mask)) some.tuples.Add(tuple);
    }
    if (some.tuples.empty()) return std::nullopt;
    for (const int factor : relation.factors) related[static_cast<size_t>(factor)] = true;
    left.relations.push_back(std::move(some));
  }
  for (size_t factor = 0; factor < problem.factors.size(); ++factor) {
    if (related[factor]) continue;
    Relation some{{static_cast<int>(factor)}, {}};
    for (size_t value = 0; value < mask[factor].size(); ++value) {
      if (mask[factor][value]) some.tuples.Add(std::array{static_cast<uint8_t>(value)});
    }
    if (some.tuples.empty()) return std::nullopt;
    left.relations.push_back(std::move(some));
  }
  return left;
}

std::optional<CoveringProblem> TakenOf(const CaseFactors& space, const Taken& taken) {
  std::optional<CoveringProblem> left = Restrict(*space.problem, MaskOf(space, taken.values));
  for (const SupportedValues& values : taken.without) {
    const Excluded excluded = ExcludedIn(space, values);
    if (left && !Exclude(excluded, &*left)) left.reset();
  }
  return left;
}

CoveringRow PlainValues(const CaseFactors& space, const Taken& taken) {
  const ValueMask mask = MaskOf(space, taken.values);
  CoveringRow row(mask.size(), -1);
  for (const auto& [name, value] : taken.plain) {
    const size_t factor = IndexOfFactor(space, name);
    const std::vector<std::string>& known = space.problem->factors[factor].values;
    const auto found = std::find(known.begin(), known.end(), value);
    const auto index = static_cast<size_t>(found - known.begin());
    if (found == known.end() || !mask[factor][index]) {
      throw std::invalid_argument(space.name + ": plain: " + name + " = \"" + value +
                                  "\" is not among the values that are taken");
    }
    row[factor] = static_cast<int>(index);
  }
  return row;
}

bool HasExcluded(const CaseFactors& space, const Taken& taken, const CoveringRow& row) {
  return std::any_of(
      taken.without.begin(), taken.without.end(),
      [&](const SupportedValues& values) { return Has(row, ExcludedIn(space, values)); });
}

std::optional<CoveringRow> NearestRow(const CoveringProblem& problem, const ValueMask& mask,
                                      const CoveringRow& row, int factor, int value) {
  CoveringRow with = row;
  At(with, factor) = value;
  ValueMask wanted = mask;
  At(wanted, factor).assign(At(wanted, factor).size(), false);
  At(wanted, factor)[static_cast<size_t>(value)] = true;
  for (const Relation& relation : problem.relations) {
    Tuple nearest;
    std::vector<int> here;
    for (const int of : relation.factors) here.push_back(At(with, of));
    size_t fewest = here.size() + 1;
    for (const Tuple tuple : relation.tuples) {
      const size_t changes = Changes(tuple, here, fewest);
      if (changes >= fewest || !Takes(relation, tuple, wanted)) continue;
      fewest = changes;
      nearest = tuple;
      if (fewest == 0) break;
    }
    if (fewest > here.size()) return std::nullopt;
    for (size_t i = 0; i < nearest.size(); ++i) At(with, relation.factors[i]) = nearest[i];
  }
  return with;
}

ValueMask AllValuesOf(const CoveringProblem& problem) {
  ValueMask mask;
  for (const Factor& factor : problem.factors) mask.emplace_back(factor.values.size(), true);
  return mask;
}

}  // namespace shardproof
