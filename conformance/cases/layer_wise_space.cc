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
    {.momentum = 0.5,
     .nesterov = true,
     .coefficients = MuonCoefficients::kSimple,
     .scale_mode = MuonScale::kUnitRmsNorm},
    {.nesterov = true, .precision = MuonPrecision::kMedium},
    {.coefficients = MuonCoefficients::kPolarExpress,
     .ns_steps = 8,
     .scale_mode = MuonScale::kShapeScaling,
     .extra_scale = 4,
     .split_qkv = false},
};

void SetOptimizer(Case& c, size_t value) {
  InstanceSpec& spec = c.instances.front();
  spec.optimizer = static_cast<Optimizer>(std::min<size_t>(value, 2));
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
  hardest.grad_comm_dtype = KnobDtype::kBf16;
  return LongestSequence(std::move(hardest)) > 0;
}

}  // namespace

LayerWiseSpace::LayerWiseSpace(const std::vector<int32_t>& worlds)
    : FactorSpace(Space::kLayerWise) {
  AddWorld(worlds);
  AddSetter("place", {"whole", "from1"}, SetPlace);
  AddKnobs({"tp", "cp", "pp", "ep", "order"});
  AddSetter("experts", {"none", "one each", "moe4"}, SetExperts);
  AddKnobs({"groups", "create_all_gather_group", "microbatches", "layer_wise_layout",
            "layer_wise_transport", "layer_wise_buffer", "overlap_grad_reduce",
            "overlap_param_gather", "param_dtype", "main_grads_dtype", "bucket_size",
            "grad_comm_dtype", "average_in_collective", "calculate_per_token_loss", "loss_scale"});
  AddSetter("recompute", {"nothing", "layers", "norm,core_attn"}, SetRecompute);
  AddSetter("optimizer",
            {"sgd", "adamw", "muon", "muon simple", "muon medium", "muon polar_express"},
            SetOptimizer);
  AddOtherKnobs();
  RelateGridAndModel();
  RelateGathers();
  Relate({"average_in_collective", "calculate_per_token_loss"}, [](const Case& c) {
    const InstanceSpec& spec = c.instances.front();
    return !spec.average_in_collective || !spec.per_token_loss;
  });
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
  Relate({"layer_wise_layout", "layer_wise_transport", "layer_wise_buffer", "overlap_grad_reduce",
          "overlap_param_gather", "param_dtype", "main_grads_dtype"},
         [&](Case c) {
           InstanceSpec& spec = c.instances.front();
           spec.strategy = ShardingStrategy::kLayerWise;
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
  spec.strategy = ShardingStrategy::kLayerWise;
  spec.etp = spec.tp;
  spec.lr = 0.0625;
  spec.model.sequence = LongestSequence(spec);
  Derive(c);
  return c;
}

}  // namespace shardproof
