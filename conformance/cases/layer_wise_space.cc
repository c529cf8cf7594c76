#include "conformance/cases/layer_wise_space.h"

#include <algorithm>

#include "conformance/cases/bounds.h"
#include "conformance/cases/illegal.h"

namespace shardproof {
namespace {

// All of the world, or a rank outside that idles.
void SetPlace(Case& c, size_t value) {
  InstanceSpec& spec = c.instances.front();
  spec.offset = static_cast<int32_t>(value);
  spec.span = c.world - spec.offset;
}

// Layers with a dense MLP only, with one expert per ep rank beside it, with four that are routed
// to.
void SetExperts(Case& c, size_t value) {
  ModelConfig& model = c.instances.front().model;
  model.experts = value == 1;
  model.moe = {};
  if (value == 2) model.moe.experts = 4;
}

const MuonSpec kMuon[] = {
    {},
    {.momentum = 0.5, .nesterov = true, .coefficients = "simple", .scale_mode = "unit_rms_norm"},
    {.nesterov = true, .precision = "medium"},
    {.coefficients = "polar_express",
     .ns_steps = 8,
     .scale_mode = "shape_scaling",
     .extra_scale = 4,
     .split_qkv = false},
};

void SetOptimizer(Case& c, size_t value) {
  InstanceSpec& spec = c.instances.front();
  spec.optimizer = value == 0 ? "sgd" : value == 1 ? "adamw" : "muon";
  spec.muon = value < 2 ? MuonSpec{} : kMuon[value - 2];
}

// What is computed again in backward: nothing, whole layers, parts of them.
void SetRecompute(Case& c, size_t value) {
  InstanceSpec& spec = c.instances.front();
  spec.recompute = value == 1;
  spec.recompute_modules = value == 2 ? "norm,core_attn" : "";
}

// Exact whatever the dtypes and the model are. REQUIRES: divisible.
bool Exact(InstanceSpec hardest) {
  hardest.model.tied = true;
  hardest.grad_comm_dtype = "bf16";
  return LongestSequence(std::move(hardest)) > 0;
}

}  // namespace

LayerWiseSpace::LayerWiseSpace(const std::vector<int32_t>& worlds) {
  AddGridFactors(worlds);
  AddGatherFactors();
  AddEngineFactors();
  AddDenseModelFactors();
  RelateGridAndModel();
  RelateGathers();
  Relate({"average_in_collective", "calculate_per_token_loss"}, [](const Case& c) {
    const InstanceSpec& spec = c.instances.front();
    return !spec.average_in_collective || !spec.per_token_loss;
  });
}

void LayerWiseSpace::AddGridFactors(const std::vector<int32_t>& worlds) {
  Add("world", &Case::world, worlds);
  AddSetter("place", {"whole", "from1"}, SetPlace);
  Add("tp", &InstanceSpec::tp, {1, 2});
  Add("cp", &InstanceSpec::cp, {1, 2});
  Add("pp", &InstanceSpec::pp, {1, 2});
  Add("ep", &InstanceSpec::ep, {1, 2, 4});
  Add("order", &InstanceSpec::order, {"tp-cp-ep-dp-pp", "dp-cp-ep-tp-pp"});
  AddSetter("experts", {"none", "one each", "moe4"}, SetExperts);
  Add("groups_from_grid", &InstanceSpec::grid, {false, true});
  Add("twin", &InstanceSpec::twin, {"none", "given"});
  Add("microbatches", &InstanceSpec::microbatches, {1, 2, 4});
}

void LayerWiseSpace::AddGatherFactors() {
  Add("layout", &LayerWiseSpec::layout, {"dealt", "aligned"});
  Add("transport", &LayerWiseSpec::transport, {"all_gather_v", "broadcast", "padded"});
  Add("buffer", &LayerWiseSpec::buffer, {"own", "grads"});
  Add("overlap_grad_reduce", &InstanceSpec::overlap_grad_reduce, {false, true});
  Add("overlap_param_gather", &InstanceSpec::overlap_param_gather, {false, true});
  Add("param_dtype", &InstanceSpec::param_dtype, {"fp32", "bf16"});
  Add("main_grads_dtype", &InstanceSpec::main_grads_dtype, {"fp32", "bf16"});
  // one bucket; one parameter each; several of each
  Add<InstanceSpec, int64_t>("bucket_size", &InstanceSpec::bucket_size, {0, 1, 1000});
}

void LayerWiseSpace::AddEngineFactors() {
  Add("grad_comm_dtype", &InstanceSpec::grad_comm_dtype, {"fp32", "bf16"});
  Add("average_in_collective", &InstanceSpec::average_in_collective, {false, true});
  Add("calculate_per_token_loss", &InstanceSpec::per_token_loss, {false, true});
  Add("loss_scale_log2", &InstanceSpec::loss_scale_log2, {0, 3});
  AddSetter("recompute", {"nothing", "layers", "norm,core_attn"}, SetRecompute);
  AddSetter("optimizer",
            {"sgd", "adamw", "muon", "muon simple", "muon medium", "muon polar_express"},
            SetOptimizer);
  Add("weight_decay", &InstanceSpec::weight_decay, {0.0, 0.0625});
  Add("clip_grad", &InstanceSpec::clip_grad, {0.0, 0.5, 1048576.0});
  Add("grad_norm", &InstanceSpec::grad_norm, {false, true});
  Add("zero_count", &InstanceSpec::zero_count, {false, true});
  Add("skip_norm", &InstanceSpec::skip_norm, {0.0, 1048576.0});
  Add("check_for_nan_in_grad", &InstanceSpec::check_for_nan, {false, true});
  // At least three steps, and between them what values that are still to be gathered may meet: the
  // model is evaluated, saved, loaded into, created again.
  Add("script", &InstanceSpec::script, {"tettt", "ttsttltt", "ttsrlett", "etrttet"});
}

void LayerWiseSpace::RelateGridAndModel() {
  // Tuples of one grid follow each other: it is derived once.
  InstanceSpec last;
  bool last_legal = false;
  Relate({"world", "place", "tp", "cp", "pp", "ep", "order", "microbatches", "experts", "odd_sizes",
          "reused", "unused"},
         [&](const Case& c) {
           const InstanceSpec& spec = c.instances.front();
           const ModelConfig& model = spec.model;
           const bool routed = model.moe.experts > 0;
           if (routed && (model.odd_sizes || model.reused || !model.unused.empty())) return false;
           if (spec.span < 1 || spec.span % (spec.tp * spec.cp * spec.pp) != 0 ||
               spec.span % (spec.tp * spec.ep * spec.pp) != 0)
             return false;
           Case grid = c;
           InstanceSpec& of = grid.instances.front();
           of.model.odd_sizes = of.model.reused = false;
           of.model.unused.clear();
           if (of == last) return last_legal;
           last = of;
           return last_legal = Exact(of) && LegalForOneToken(grid);
         });
}

void LayerWiseSpace::RelateGathers() {
  const std::vector<IllegalRule> rules = IllegalLayerWiseRules();
  Relate({"layout", "transport", "buffer", "overlap_grad_reduce", "overlap_param_gather",
          "param_dtype", "main_grads_dtype"},
         [&](Case c) {
           InstanceSpec& spec = c.instances.front();
           spec.strategy = "layer_wise";
           return std::all_of(rules.begin(), rules.end(), [&](const IllegalRule& rule) {
             return rule.broken(spec, c.world).empty();
           });
         });
}

Case LayerWiseSpace::Make(const CoveringRow& row, uint64_t seed) const {
  Case c;
  c.seed = seed;
  SetAll(c, row);
  InstanceSpec& spec = c.instances.front();
  spec.strategy = "layer_wise";
  spec.etp = spec.tp;
  spec.lr = 0.0625;
  spec.model.sequence = LongestSequence(spec);
  Derive(c);
  return c;
}

}  // namespace shardproof
