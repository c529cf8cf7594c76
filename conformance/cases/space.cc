#include "conformance/cases/space.h"

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "conformance/cases/bounds.h"
#include "conformance/cases/illegal.h"
#include "conformance/cases/real_text.h"

namespace shardproof {
namespace {

template <typename T>
std::string Shown(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value.empty() ? "none" : value;
  } else if constexpr (std::is_same_v<T, double>) {
    return RealText(value);
  } else {
    return std::to_string(value);
  }
}

ModelConfig& Part(Case& c, ModelConfig*) { return c.instances.front().model; }
InstanceSpec& Part(Case& c, InstanceSpec*) { return c.instances.front(); }
Case& Part(Case& c, Case*) { return c; }

// Where in the world the instance lives. Values: all of it, from rank 1, 2 or 4 on, the first half.
const char* const kPlaces[] = {"whole", "from1", "from2", "from4", "half"};

void SetPlace(Case& c, size_t value) {
  const int32_t offsets[] = {0, 1, 2, 4, 0};
  InstanceSpec& spec = c.instances.front();
  spec.offset = offsets[value];
  spec.span = value == 4 ? c.world / 2 : c.world - spec.offset;
}

// Divisibility, cheaply, before anything is built.
bool Divides(const InstanceSpec& spec, const Case& c, size_t place) {
  if (spec.span < 1 || (place == 4 && c.world % 2 != 0)) return false;
  if (spec.span % (spec.tp * spec.cp * spec.pp) != 0 ||
      spec.span % (spec.tp * spec.ep * spec.pp) != 0)
    return false;
  return DpCpSize(spec) % spec.outer == 0 && DpCpSize(spec) / spec.ep % spec.outer == 0;
}

// Legal, and exact whatever the dtypes and the model are.
bool Askable(Case c) {
  InstanceSpec hardest = c.instances.front();
  hardest.model.tied = true;
  hardest.grad_comm_dtype = "bf16";
  if (LongestSequence(hardest) == 0) return false;
  c.instances.front().model.sequence = 1;
  try {
    Derive(c);
  } catch (const std::invalid_argument&) {
    return false;
  }
  return c.illegal.empty();
}

// Counts through all value tuples of a relation's factors, last one fastest. False at the end.
bool Next(const CoveringProblem& problem, const std::vector<int>& factors,
          std::vector<uint8_t>& tuple) {
  for (size_t i = factors.size(); i-- > 0;) {
    if (++tuple[i] < problem.factors[static_cast<size_t>(factors[i])].values.size()) return true;
    tuple[i] = 0;
  }
  return false;
}

}  // namespace

template <typename Owner, typename T>
void CaseSpace::Add(const std::string& name, T Owner::*member, const std::vector<T>& values) {
  Factor factor{name, {}};
  for (size_t i = 0; i < values.size(); ++i)
    factor.values.push_back(Shown(static_cast<T>(values[i])));
  problem_.factors.push_back(std::move(factor));
  setters_.push_back([member, values](Case& c, size_t value) {
    Part(c, static_cast<Owner*>(nullptr)).*member = values[value];
  });
}

CaseSpace::CaseSpace(const std::vector<int32_t>& worlds) {
  AddGridFactors(worlds);
  AddEngineFactors();
  AddModelFactors();
  RelateGrid();
  RelateAverages();
}

void CaseSpace::AddPlace() {
  problem_.factors.push_back({"place", {std::begin(kPlaces), std::end(kPlaces)}});
  setters_.push_back(SetPlace);
}

void CaseSpace::AddGridFactors(const std::vector<int32_t>& worlds) {
  Add("world", &Case::world, worlds);
  AddPlace();
  Add("tp", &InstanceSpec::tp, {1, 2});
  Add("cp", &InstanceSpec::cp, {1, 2});
  Add("pp", &InstanceSpec::pp, {1, 2});
  Add("ep", &InstanceSpec::ep, {1, 2, 4});
  Add("experts", &ModelConfig::experts, {false, true});
  Add("order", &InstanceSpec::order,
      {"tp-cp-ep-dp-pp", "tp-pp-cp-ep-dp", "dp-cp-ep-tp-pp", "pp-dp-ep-cp-tp", "cp-tp-dp-ep-pp",
       "tp-dp"});
  Add("num_optimizer_instances", &InstanceSpec::outer, {1, 2, 4});
  Add("microbatches", &InstanceSpec::microbatches, {1, 2, 3});
  Add("strategy", &InstanceSpec::strategy,
      {"no_shard", "optim", "optim_grads", "optim_grads_params"});
  Add("outer_strategy", &InstanceSpec::outer_strategy, {"no_shard", "optim"});
  Add("groups_from_grid", &InstanceSpec::grid, {false, true});
  Add("twin", &InstanceSpec::twin, {"none", "given"});
}

void CaseSpace::AddEngineFactors() {
  Add("overlap_grad_reduce", &InstanceSpec::overlap_grad_reduce, {false, true});
  Add("overlap_param_gather", &InstanceSpec::overlap_param_gather, {false, true});
  Add("average_in_collective", &InstanceSpec::average_in_collective, {false, true});
  Add("calculate_per_token_loss", &InstanceSpec::per_token_loss, {false, true});
  Add("param_dtype", &InstanceSpec::param_dtype, {"fp32", "bf16"});
  Add("grad_comm_dtype", &InstanceSpec::grad_comm_dtype, {"fp32", "bf16"});
  Add("main_grads_dtype", &InstanceSpec::main_grads_dtype, {"fp32", "bf16"});
  Add<InstanceSpec, int64_t>("bucket_size", &InstanceSpec::bucket_size, {0, 300});
  Add<InstanceSpec, int64_t>("prefetch_limit_bytes", &InstanceSpec::prefetch_limit_bytes,
                             {-1, 0, 3000, 1 << 20});
  Add("units", &InstanceSpec::units, {"TransformerLayer", "", "TransformerLayer,Embedding"});
  Add("recompute", &InstanceSpec::recompute, {false, true});
  Add("optimizer", &InstanceSpec::optimizer, {"sgd", "adamw"});
  Add("weight_decay", &InstanceSpec::weight_decay, {0.0, 0.0625});
  Add("clip_grad", &InstanceSpec::clip_grad, {0.0, 0.5, 1048576.0});
  Add("grad_norm", &InstanceSpec::grad_norm, {false, true});
  Add("check_for_nan_in_grad", &InstanceSpec::check_for_nan, {false, true});
  Add("script", &InstanceSpec::script, {"ttt", "tettt", "ttsttltt", "ttsrlt", "etrte"});
}

void CaseSpace::AddModelFactors() {
  Add("layers", &ModelConfig::layers, {2, 3});
  Add("tied", &ModelConfig::tied, {false, true});
  Add("biases", &ModelConfig::biases, {false, true});
  Add("odd_sizes", &ModelConfig::odd_sizes, {false, true});
  Add("root_param", &ModelConfig::root_param, {false, true});
  Add("reused", &ModelConfig::reused, {false, true});
  Add("frozen", &ModelConfig::frozen, {"", "embedding", "layer", "norms"});
  Add("unused", &ModelConfig::unused, {"", "step", "rank"});
}

void CaseSpace::RelateGrid() {
  Relation relation;
  for (const char* name : {"world", "place", "tp", "cp", "pp", "ep", "experts", "order",
                           "num_optimizer_instances", "microbatches"}) {
    relation.factors.push_back(FactorIndex(name));
  }
  const std::vector<int> grid_factors = relation.factors;
  relation.factors.push_back(FactorIndex("strategy"));
  relation.factors.push_back(FactorIndex("outer_strategy"));
  std::vector<uint8_t> tuple(grid_factors.size(), 0);
  do {
    Case c;
    for (size_t i = 0; i < grid_factors.size(); ++i)
      setters_[static_cast<size_t>(grid_factors[i])](c, tuple[i]);
    InstanceSpec& spec = c.instances.front();
    spec.etp = spec.tp;
    if (!Divides(spec, c, tuple[1]) || !Askable(c)) continue;
    for (uint8_t strategy = 0; strategy < 4; ++strategy) {
      for (uint8_t outer_strategy = 0; outer_strategy < 2; ++outer_strategy) {
        if (outer_strategy == 1 && (strategy != 3 || spec.outer == 1)) continue;
        relation.tuples.push_back(tuple);
        relation.tuples.back().insert(relation.tuples.back().end(), {strategy, outer_strategy});
      }
    }
  } while (Next(problem_, grid_factors, tuple));
  problem_.relations.push_back(std::move(relation));
}

void CaseSpace::RelateAverages() {
  Relation relation{{FactorIndex("average_in_collective"), FactorIndex("calculate_per_token_loss")},
                    {{0, 0}, {0, 1}, {1, 0}}};
  problem_.relations.push_back(std::move(relation));
}

int CaseSpace::FactorIndex(const std::string& name) const {
  for (size_t i = 0; i < problem_.factors.size(); ++i) {
    if (problem_.factors[i].name == name) return static_cast<int>(i);
  }
  throw std::invalid_argument("no factor " + name);
}

Case CaseSpace::Make(const CoveringRow& row, uint64_t seed) const {
  Case c;
  c.seed = seed;
  for (size_t factor = 0; factor < row.size(); ++factor)
    setters_[factor](c, static_cast<size_t>(row[factor]));
  InstanceSpec& spec = c.instances.front();
  spec.etp = spec.tp;
  spec.model.sequence = LongestSequence(spec);
  Derive(c);
  return c;
}

CoveringRow CaseSpace::RowOf(const Case& c) const {
  CoveringRow row(problem_.factors.size(), -1);
  for (size_t factor = 0; factor < row.size(); ++factor) {
    for (size_t value = 0; value < problem_.factors[factor].values.size() && row[factor] < 0;
         ++value) {
      Case with = c;
      setters_[factor](with, value);
      if (with == c)
        row[factor] =
            static_cast<int>(value);  // setting it changes nothing: the case has this value
    }
  }
  return row;
}

}  // namespace shardproof
