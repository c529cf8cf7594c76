#include "conformance/cases/factor_space.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "conformance/cases/illegal.h"

namespace shardproof {

bool CommScheduleGoes(const Case& c) {
  InstanceSpec spec = c.instances.front();
  spec.overlap_moe = true;  // without it a priority means nothing
  return CommScheduleProblem(spec).empty();
}

Space SpaceCounting(const Case& c) {
  const InstanceSpec& spec = c.instances.front();
  const bool layer_wise = spec.strategy == ShardingStrategy::kLayerWise;
  if (spec.chunks > 1 || (layer_wise && spec.overlap_moe)) return Space::kPipeline;
  if (layer_wise) return Space::kLayerWise;
  return spec.model.moe.experts > 0 ? Space::kSchedule : Space::kDense;
}

int32_t EtpOf(const InstanceSpec& spec) {
  return spec.sequence_parallel && spec.model.moe.experts > 0 ? 1 : spec.tp;
}

bool LegalForOneToken(Case c) {
  InstanceSpec& spec = c.instances.front();
  spec.etp = EtpOf(spec);
  spec.model.sequence = spec.sequence_parallel ? spec.tp : 1;
  spec.loss_chunks = 1;
  try {
    Derive(c);
  } catch (const std::invalid_argument&) {
    return false;
  }
  return c.illegal.empty();
}

int FactorSpace::FactorIndex(const std::string& name) const {
  for (size_t i = 0; i < problem_.factors.size(); ++i) {
    if (problem_.factors[i].name == name) return static_cast<int>(i);
  }
  throw std::invalid_argument("no factor " + name);
}

CoveringRow FactorSpace::RowOf(const Case& c) const {
  CoveringRow row(problem_.factors.size(), -1);
  for (size_t factor = 0; factor < row.size(); ++factor) {
    const size_t values = problem_.factors[factor].values.size();
    for (size_t value = 0; value < values && row[factor] < 0; ++value) {
      Case with = c;
      setters_[factor](with, value);
      // setting it changes nothing: the case has this value
      if (with == c) row[factor] = static_cast<int>(value);
    }
  }
  return row;
}

bool FactorSpace::Counts(const Case& c) const { return SpaceCounting(c) == space_; }

std::vector<CoveringRow> FactorSpace::RowsOf(const std::vector<Case>& cases) const {
  std::vector<CoveringRow> rows;
  for (const Case& c : cases) {
    const bool runs = c.illegal.empty() && !MustFail(c.instances.front());
    if (Counts(c) && runs && c.instances.size() == 1) rows.push_back(RowOf(c));
  }
  return rows;
}

CoveringRow FactorSpace::Cheap() const {
  // In this order: the first that a factor has.
  const std::vector<std::pair<std::string, std::vector<std::string>>> cheap{
      {"world", {"4"}},
      {"stages", {"2 ranks of 2 chunks"}},
      {"layers", {"2"}},
      {"microbatches", {"2"}},
      {"script", {"ttt", "tett", "tet"}}};
  CoveringRow row(problem_.factors.size(), -1);
  for (const auto& [name, values] : cheap) {
    for (size_t factor = 0; factor < row.size(); ++factor) {
      const std::vector<std::string>& of = problem_.factors[factor].values;
      if (problem_.factors[factor].name != name) continue;
      const auto found = std::find_first_of(of.begin(), of.end(), values.begin(), values.end());
      if (found != of.end()) row[factor] = static_cast<int>(found - of.begin());
    }
  }
  return row;
}

void FactorSpace::AddSetter(const std::string& name, const std::vector<std::string>& values,
                            Setter setter) {
  problem_.factors.push_back({name, values});
  setters_.push_back(std::move(setter));
}

bool FactorSpace::Has(const std::string& name) const {
  return std::any_of(problem_.factors.begin(), problem_.factors.end(),
                     [&](const Factor& factor) { return factor.name == name; });
}

void FactorSpace::AddKnob(const Knob& knob) {
  const Knob::Factor& factor = knob.factors.at(space_);
  AddSetter(knob.name, factor.shown,
            [set = factor.set](Case& c, size_t value) { set(c.instances.front(), value); });
}

void FactorSpace::AddKnobs(const std::vector<std::string>& names) {
  for (const std::string& name : names) AddKnob(KnobNamed(name));
}

void FactorSpace::AddOtherKnobs() {
  for (const Knob& knob : KnobTable()) {
    if (knob.factors.contains(space_) && !Has(knob.name)) AddKnob(knob);
  }
}

void FactorSpace::AddWorld(const std::vector<int32_t>& worlds) {
  std::vector<std::string> shown;
  for (int32_t world : worlds) shown.push_back(std::to_string(world));
  AddSetter("world", shown, [worlds](Case& c, size_t value) { c.world = worlds[value]; });
}

void FactorSpace::Set(Case& c, int factor, int value) const {
  setters_[static_cast<size_t>(factor)](c, static_cast<size_t>(value));
}

void FactorSpace::SetAll(Case& c, const CoveringRow& row) const {
  for (size_t factor = 0; factor < row.size(); ++factor)
    setters_[factor](c, static_cast<size_t>(row[factor]));
}

void FactorSpace::ForEachTuple(const std::vector<std::string>& names, const Visitor& visit,
                               const Goes& goes) const {
  std::vector<int> factors;
  for (const std::string& name : names) factors.push_back(FactorIndex(name));
  std::vector<uint8_t> tuple(factors.size(), 0);
  std::vector<Case> with(factors.size() + 1);  // [i]: with the first i values of the tuple
  const auto values = [&](size_t i) {
    return problem_.factors[static_cast<size_t>(factors[i])].values.size();
  };
  for (size_t changed = 0;;) {
    size_t after = changed;
    for (bool goes_on = true; goes_on && after < tuple.size(); ++after) {
      with[after + 1] = with[after];
      Set(with[after + 1], factors[after], tuple[after]);
      goes_on = !goes || goes(with[after + 1]);
      if (goes_on && after + 1 == tuple.size()) visit(tuple, with.back());
    }
    while (after > 0 && ++tuple[after - 1] == values(after - 1)) tuple[--after] = 0;
    if (after == 0) return;
    changed = after - 1;
  }
}

void FactorSpace::AddRelation(const std::vector<std::string>& factors, TupleList tuples) {
  Relation relation;
  for (const std::string& name : factors) {
    const int factor = FactorIndex(name);
    for (const Relation& other : problem_.relations) {
      if (std::count(other.factors.begin(), other.factors.end(), factor) > 0)
        throw std::logic_error("two relations of factor " + name);
    }
    relation.factors.push_back(factor);
  }
  relation.tuples = std::move(tuples);
  problem_.relations.push_back(std::move(relation));
}

void FactorSpace::Relate(const std::vector<std::string>& factors,
                         const std::function<bool(const Case& c)>& allowed) {
  TupleList tuples;
  ForEachTuple(factors, [&](const std::vector<uint8_t>& tuple, const Case& c) {
    if (allowed(c)) tuples.Add(tuple);
  });
  AddRelation(factors, std::move(tuples));
}

}  // namespace shardproof
