#include "conformance/cases/space.h"

#include <iterator>

#include "conformance/cases/bounds.h"

namespace shardproof {
namespace {

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
bool Askable(const Case& c) {
  InstanceSpec hardest = c.instances.front();
  hardest.model.tied = true;
  hardest.grad_comm_dtype = "bf16";
  return LongestSequence(hardest) > 0 && LegalForOneToken(c);
}

}  // namespace

CaseSpace::CaseSpace(const std::vector<int32_t>& worlds) {
  AddGridFactors(worlds);
  AddEngineFactors();
  AddDenseModelFactors();
  RelateGrid();
  Relate({"average_in_collective", "calculate_per_token_loss"}, [](const Case& c) {
    const InstanceSpec& spec = c.instances.front();
    return !spec.average_in_collective || !spec.per_token_loss;
  });
}

void CaseSpace::AddGridFactors(const std::vector<int32_t>& worlds) {
  Add("world", &Case::world, worlds);
  AddSetter("place", {std::begin(kPlaces), std::end(kPlaces)}, SetPlace);
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
  Add("nccl_ub", &InstanceSpec::nccl_ub, {false, true});
  Add("optimizer", &InstanceSpec::optimizer, {"sgd", "adamw"});
  Add("weight_decay", &InstanceSpec::weight_decay, {0.0, 0.0625});
  Add("clip_grad", &InstanceSpec::clip_grad, {0.0, 0.5, 1048576.0});
  Add("grad_norm", &InstanceSpec::grad_norm, {false, true});
  Add("check_for_nan_in_grad", &InstanceSpec::check_for_nan, {false, true});
  Add("script", &InstanceSpec::script, {"ttt", "tettt", "ttsttltt", "ttsrlt", "etrte"});
}

void CaseSpace::RelateGrid() {
  const std::vector<std::string> grid{
      "world",       "place", "tp", "cp", "pp", "ep", "experts", "order", "num_optimizer_instances",
      "microbatches"};
  std::vector<std::string> factors = grid;
  factors.insert(factors.end(), {"strategy", "outer_strategy"});
  std::vector<std::vector<uint8_t>> tuples;
  ForEachTuple(grid, [&](const std::vector<uint8_t>& tuple, const Case& c) {
    const InstanceSpec& spec = c.instances.front();
    if (!Divides(spec, c, tuple[1]) || !Askable(c)) return;
    for (uint8_t strategy = 0; strategy < 4; ++strategy) {
      for (uint8_t outer_strategy = 0; outer_strategy < 2; ++outer_strategy) {
        if (outer_strategy == 1 && (strategy != 3 || spec.outer == 1)) continue;
        tuples.push_back(tuple);
        tuples.back().insert(tuples.back().end(), {strategy, outer_strategy});
      }
    }
  });
  AddRelation(factors, std::move(tuples));
}

Case CaseSpace::Make(const CoveringRow& row, uint64_t seed) const {
  Case c;
  c.seed = seed;
  SetAll(c, row);
  InstanceSpec& spec = c.instances.front();
  spec.etp = spec.tp;
  spec.model.sequence = LongestSequence(spec);
  Derive(c);
  return c;
}

}  // namespace shardproof
