#include "conformance/cases/support/supported.h"

#include <algorithm>
#include <stdexcept>

#include "conformance/cases/fabric_spaces.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

template <typename Space>
CaseFactors FactorsOf(const std::string& name, const Space& space) {
  return {name, &space.problem(),
          [&space](const CoveringRow& row, uint64_t seed) { return space.Make(row, seed); },
          [&space](const Case& c) { return space.RowOf(c); }};
}

std::vector<int32_t> UpTo(int ranks, std::vector<int32_t> worlds) {
  if (ranks > 0) std::erase_if(worlds, [&](int32_t world) { return world > ranks; });
  return worlds;
}

// Not choices of an engine: where a case takes place.
bool OfTheWorld(const Factor& factor) { return factor.name == "world" || factor.name == "place"; }

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

bool Takes(const Relation& relation, const std::vector<uint8_t>& tuple, const ValueMask& mask) {
  for (size_t i = 0; i < tuple.size(); ++i) {
    if (!At(mask, relation.factors[i])[tuple[i]]) return false;
  }
  return true;
}

}  // namespace

std::vector<CaseFactors> FactorsUpTo(int ranks, Spaces& spaces) {
  const FabricSpaces& row = SpacesOfFabric("sim");
  std::vector<CaseFactors> all;
  if (const auto worlds = UpTo(ranks, row.worlds); !worlds.empty())
    all.push_back(FactorsOf("strategies", spaces.Dense(worlds)));
  if (const auto worlds = UpTo(ranks, row.schedule_worlds); !worlds.empty())
    all.push_back(FactorsOf("experts", spaces.Schedule(worlds, row.schedule_eps)));
  if (const auto worlds = UpTo(ranks, row.layer_wise_worlds); !worlds.empty())
    all.push_back(FactorsOf("layer_wise", spaces.LayerWise(worlds)));
  return all;
}

ValueMask MaskOf(const CaseFactors& space, const SupportedValues& values) {
  ValueMask mask;
  for (const Factor& factor : space.problem->factors) {
    mask.emplace_back(factor.values.size(), OfTheWorld(factor));
    if (!OfTheWorld(factor)) mask.back().front() = true;
  }
  for (const auto& [name, taken] : values) {
    const size_t factor = IndexOfFactor(space, name);
    const std::vector<std::string>& known = space.problem->factors[factor].values;
    mask[factor].assign(known.size(), false);
    for (const std::string& value : taken) {
      const auto found = std::find(known.begin(), known.end(), value);
      if (found != known.end()) {
        mask[factor][static_cast<size_t>(found - known.begin())] = true;
      } else if (!OfTheWorld(space.problem->factors[factor])) {  // of another number of ranks
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
    for (const std::vector<uint8_t>& tuple : relation.tuples) {
      if (Takes(relation, tuple, mask)) some.tuples.push_back(tuple);
    }
    if (some.tuples.empty()) return std::nullopt;
    for (const int factor : relation.factors) related[static_cast<size_t>(factor)] = true;
    left.relations.push_back(std::move(some));
  }
  for (size_t factor = 0; factor < problem.factors.size(); ++factor) {
    if (related[factor]) continue;
    Relation some{{static_cast<int>(factor)}, {}};
    for (size_t value = 0; value < mask[factor].size(); ++value) {
      if (mask[factor][value]) some.tuples.push_back({static_cast<uint8_t>(value)});
    }
    if (some.tuples.empty()) return std::nullopt;
    left.relations.push_back(std::move(some));
  }
  return left;
}

std::optional<CoveringRow> NearestRow(const CoveringProblem& problem, const ValueMask& mask,
                                      const CoveringRow& row, int factor, int value) {
  CoveringRow with = row;
  At(with, factor) = value;
  ValueMask wanted = mask;
  At(wanted, factor).assign(At(wanted, factor).size(), false);
  At(wanted, factor)[static_cast<size_t>(value)] = true;
  for (const Relation& relation : problem.relations) {
    const std::vector<uint8_t>* nearest = nullptr;
    size_t fewest = relation.factors.size() + 1;
    for (const std::vector<uint8_t>& tuple : relation.tuples) {
      size_t changes = 0;
      for (size_t i = 0; i < tuple.size(); ++i)
        changes += tuple[i] != At(with, relation.factors[i]);
      if (changes >= fewest || !Takes(relation, tuple, wanted)) continue;
      fewest = changes;
      nearest = &tuple;
    }
    if (nearest == nullptr) return std::nullopt;
    for (size_t i = 0; i < nearest->size(); ++i) At(with, relation.factors[i]) = (*nearest)[i];
  }
  return with;
}

ValueMask AllValuesOf(const CoveringProblem& problem) {
  ValueMask mask;
  for (const Factor& factor : problem.factors) mask.emplace_back(factor.values.size(), true);
  return mask;
}

}  // namespace shardproof
