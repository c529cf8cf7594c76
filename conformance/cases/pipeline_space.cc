#include "conformance/cases/pipeline_space.h"

#include "conformance/cases/bounds.h"

namespace shardproof {
namespace {

// Ranks of the pipeline, chunks of each, layers of each chunk.
struct Stages {
  const char* name;
  int32_t ranks, chunks, layers;
};
constexpr Stages kStages[] = {{"2 ranks of 2 chunks", 2, 2, 1},
                              {"2 ranks of 2 chunks of 2 layers", 2, 2, 2},
                              {"2 ranks of 3 chunks", 2, 3, 1},
                              {"4 ranks of 2 chunks", 4, 2, 1},
                              {"one stage", 1, 1, 2}};

void SetStages(Case& c, size_t value) {
  InstanceSpec& spec = c.instances.front();
  const Stages& stages = kStages[value];
  spec.pp = stages.ranks;
  spec.chunks = stages.chunks;
  spec.model.layers = stages.ranks * stages.chunks * stages.layers;
}

// Which layers have experts: of some stages none.
void SetExperts(Case& c, size_t value) {
  MoeConfig& moe = c.instances.front().model.moe;
  const char* const layers[] = {"all", "all", "odd", "first"};
  moe = {};
  moe.experts = value == 0 ? 0 : 8;
  moe.layers = layers[value];
}

void SetSchedule(Case& c, size_t value) {
  InstanceSpec& spec = c.instances.front();
  spec.overlap_moe = value > 0;
  spec.delay_wgrad = value == 2 || value == 4;
  spec.early_release = value >= 3;
}

struct Engine {
  const char* name;
  ShardingStrategy strategy;
  int32_t outer = 1;
  bool overlap_grad_reduce = false, overlap_param_gather = false;
  Optimizer optimizer = Optimizer::kSgd;
  LayerWiseSpec layer_wise = {};
  OuterStrategy outer_strategy = OuterStrategy::kNoShard;
  int32_t reshard_after_forward = 1;
};

constexpr auto kReplicas = ShardingStrategy::kNoShard, kOptim = ShardingStrategy::kOptim,
               kGrads = ShardingStrategy::kOptimGrads,
               kParams = ShardingStrategy::kOptimGradsParams,
               kLayerWise = ShardingStrategy::kLayerWise;

// Strategies with what they do of their own.
const std::vector<Engine>& Engines() {
  static const std::vector<Engine> kEngines = {
      {"no_shard", kReplicas},
      {"no_shard overlapped", kReplicas, 1, true},
      {"optim", kOptim, 1, false, false, Optimizer::kAdamw},
      {"optim overlapped", kOptim, 1, true, true, Optimizer::kAdamw},
      {"optim of 2 instances", kOptim, 2, true, true},
      {"optim_grads", kGrads, 1, false, false, Optimizer::kAdamw},
      {"optim_grads of 2 instances", kGrads, 2, true, true},
      {"optim_grads_params", kParams},
      {"optim_grads_params overlapped", kParams, 1, true, true, Optimizer::kAdamw},
      {"optim_grads_params of 2 instances",
       kParams,
       2,
       false,
       true,
       Optimizer::kSgd,
       {},
       OuterStrategy::kOptim},
      {"optim_grads_params kept",
       kParams,
       1,
       false,
       true,
       Optimizer::kSgd,
       {},
       OuterStrategy::kNoShard,
       0},
      {"layer_wise", kLayerWise},
      {"layer_wise overlapped", kLayerWise, 1, true, true, Optimizer::kMuon},
      {"layer_wise broadcast",
       kLayerWise,
       1,
       true,
       true,
       Optimizer::kAdamw,
       {.transport = LayerWiseTransport::kBroadcast, .buffer = LayerWiseBuffer::kGrads}},
      {"layer_wise padded",
       kLayerWise,
       1,
       true,
       false,
       Optimizer::kMuon,
       {.transport = LayerWiseTransport::kPadded}},
      {"layer_wise aligned",
       kLayerWise,
       1,
       true,
       true,
       Optimizer::kAdamw,
       {.layout = LayerWiseLayout::kAligned}}};  // never written again
  return kEngines;
}

void SetEngine(Case& c, size_t value) {
  InstanceSpec& spec = c.instances.front();
  const Engine& engine = Engines()[value];
  spec.strategy = engine.strategy;
  spec.outer = engine.outer;
  spec.outer_strategy = engine.outer_strategy;
  spec.reshard_after_forward = engine.reshard_after_forward;
  spec.overlap_grad_reduce = engine.overlap_grad_reduce;
  spec.overlap_param_gather = engine.overlap_param_gather;
  spec.optimizer = engine.optimizer;
  spec.layer_wise = engine.layer_wise;
  // One stale step shows.
  spec.lr = engine.strategy == ShardingStrategy::kLayerWise ? 0.0625 : InstanceSpec{}.lr;
}

void SetRecompute(Case& c, size_t value) {
  c.instances.front().recompute_modules = value == 1 ? "norm,core_attn" : "";
}

// Cheaply, before anything is built.
bool MakesSense(const Case& c) {
  const InstanceSpec& spec = c.instances.front();
  const bool pipelined = spec.pp > 1, routed = spec.model.moe.experts > 0;
  if (c.world % (spec.pp * spec.ep) != 0) return false;
  if (!pipelined && (spec.strategy != ShardingStrategy::kLayerWise || !spec.overlap_moe))
    return false;  // of other spaces
  if (ShardsGrads(spec) && (spec.overlap_moe || spec.units.empty())) return false;  // not legal
  if (routed ? spec.overlap_moe && spec.ep == 1 : spec.overlap_moe || spec.ep > 1) return false;
  return spec.microbatches % spec.pp == 0;
}

std::vector<std::string> Names(const auto& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.push_back(row.name);
  return names;
}

}  // namespace

PipelineSpace::PipelineSpace(const std::vector<int32_t>& worlds) : FactorSpace(Space::kPipeline) {
  AddWorld(worlds);
  AddSetter("stages", Names(kStages), SetStages);
  AddKnobs({"ep"});
  AddSetter("experts", {"none", "all layers", "odd layers", "first layer"}, SetExperts);
  AddSetter("engine", Names(Engines()), SetEngine);
  AddKnobs({"microbatches", "units"});
  AddSetter("1f1b", {"none", "1f1b", "1f1b dw", "1f1b er", "1f1b dw er"}, SetSchedule);
  AddSetter("recompute", {"nothing", "norm,core_attn"}, SetRecompute);
  AddOtherKnobs();
  RelateStages();
  Relate({"create_all_gather_group", "schedule", "high_priority_a2a_comm_stream"},
         CommScheduleGoes);
}

void PipelineSpace::RelateStages() {
  // Tuples of one grid follow each other: it is derived once.
  Case last;
  bool last_legal = false;
  Relate({"world", "stages", "ep", "experts", "engine", "microbatches", "units", "1f1b"},
         [&](const Case& c) {
           if (!MakesSense(c)) return false;
           Case grid = c;
           SetSchedule(grid, 0);
           grid.instances.front().units = InstanceSpec{}.units;
           if (grid == last) return last_legal;
           last = grid;
           return last_legal =
                      LongestSequence(grid.instances.front()) > 0 && LegalForOneToken(grid);
         });
}

Case PipelineSpace::Make(const CoveringRow& row, uint64_t seed) const {
  Case c;
  c.seed = seed;
  SetAll(c, row);
  InstanceSpec& spec = c.instances.front();
  spec.model.sequence = LongestSequence(spec);
  Derive(c);
  return c;
}

}  // namespace shardproof
