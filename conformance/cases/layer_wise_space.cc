#include "conformance/cases/layer_wise_space.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

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
  const Choice<MuonTpMode> mode = spec.muon.tp_mode;  // a factor of its own
  spec.muon = value < 2 ? MuonSpec{} : kMuon[value - 2];
  spec.muon.tp_mode = mode;
}

// What is computed again in backward: nothing, whole layers, parts of them.
void SetRecompute(Case& c, size_t value) {
  InstanceSpec& spec = c.instances.front();
  spec.recompute = value == 1;
  spec.recompute_modules = value == 2 ? "norm,core_attn" : "";
}

// Divisibility, and what shapes of the model go together, cheaply, before anything is built: of a
// case whose later factors have their defaults, all that do not change it.
bool BeginsWell(const InstanceSpec& spec) {
  const ModelConfig& model = spec.model;
  const bool routed = model.moe.experts > 0;
  if (spec.tensor_parallel && spec.tp == 1) return false;  // nothing to split over
  if (spec.sequence_parallel && (!spec.tensor_parallel || model.experts)) return false;
  if (spec.vocab_parallel && (!spec.tensor_parallel || spec.loss_chunks > 1)) return false;
  if (spec.context_parallel && (spec.cp == 1 || model.experts)) return false;
  if (routed && (model.odd_sizes || model.reused || !model.unused.empty())) return false;
  return spec.span >= 1 && spec.span % (spec.tp * spec.cp * spec.pp) == 0;
}

bool Divides(const InstanceSpec& spec) {
  return BeginsWell(spec) && spec.span % (EtpOf(spec) * spec.ep * spec.pp) == 0;
}

// Modes of Muon mean something where matrices are split, over as many ranks as all of them take.
void AddOptimizers(const std::vector<uint8_t>& tuple, const InstanceSpec& grid, TupleList& tuples) {
  for (uint8_t optimizer = 0; optimizer < 2 + std::size(kMuon); ++optimizer) {
    const bool modes = optimizer >= 2 && grid.tensor_parallel && grid.tp == 2;
    for (uint8_t mode = 0; mode < (modes ? 3 : 1); ++mode) {
      tuples.Add(tuple, std::array{optimizer, mode});
    }
  }
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
  AddKnobs({"tp", "cp", "pp", "ep", "order", "tensor_parallel", "sequence_parallel",
            "vocab_parallel", "context_parallel"});
  AddSetter("experts", {"none", "one each", "moe4"}, SetExperts);
  AddKnobs({"groups", "create_all_gather_group", "microbatches", "loss_chunks", "layer_wise_layout",
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
  Relate({"create_all_gather_group", "schedule"}, CommScheduleGoes);
  Relate({"average_in_collective", "calculate_per_token_loss"}, [](const Case& c) {
    const InstanceSpec& spec = c.instances.front();
    return !spec.average_in_collective || !spec.per_token_loss;
  });
}

void LayerWiseSpace::RelateGridAndModel() {
  std::vector<std::string> factors{"world", "place", "tp", "cp", "pp", "ep", "order", "experts"};
  factors.insert(factors.end(),
                 {"tensor_parallel", "sequence_parallel", "vocab_parallel", "context_parallel",
                  "microbatches", "loss_chunks", "odd_sizes", "reused", "unused"});
  // Tuples of one grid follow each other: it is derived once.
  InstanceSpec last;
  bool last_legal = false;
  TupleList tuples;
  const auto add = [&](const std::vector<uint8_t>& tuple, const Case& c) {
    if (!Divides(c.instances.front())) return;
    Case grid = c;
    InstanceSpec& of = grid.instances.front();
    of.model.odd_sizes = of.model.reused = false;
    const bool exact = Exact(of);
    of.loss_chunks = 1;
    of.model.unused.clear();
    if (of != last) {
      last = of;
      last_legal = LegalForOneToken(grid);
    }
    if (exact && last_legal) AddOptimizers(tuple, of, tuples);
  };
  // A place follows the world.
  ForEachTuple(factors, add, [](const Case& c) {
    return c.instances.front().span == 0 || BeginsWell(c.instances.front());
  });
  factors.insert(factors.end(), {"optimizer", "muon_tp_mode"});
  AddRelation(factors, std::move(tuples));
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
  spec.etp = EtpOf(spec);
  spec.lr = 0.0625;
  spec.model.sequence = LongestSequence(spec);
  Derive(c);
  return c;
}

}  // namespace shardproof
