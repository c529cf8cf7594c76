#include "conformance/cases/pipeline_space.h"

#include <algorithm>

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

void SetStrategy(Case& c, size_t value) {
  const ShardingStrategy strategies[] = {
      ShardingStrategy::kNoShard, ShardingStrategy::kOptim, ShardingStrategy::kOptimGrads,
      ShardingStrategy::kOptimGradsParams, ShardingStrategy::kLayerWise};
  InstanceSpec& spec = c.instances.front();
  spec.strategy = strategies[value];
  // One stale step shows.
  spec.lr = spec.strategy == ShardingStrategy::kLayerWise ? 0.0625 : InstanceSpec{}.lr;
}

void SetOptimizer(Case& c, size_t value) {
  const Optimizer optimizers[] = {Optimizer::kSgd, Optimizer::kAdamw, Optimizer::kMuon};
  c.instances.front().optimizer = optimizers[value];
}

void SetRecompute(Case& c, size_t value) {
  c.instances.front().recompute_modules = value == 1 ? "norm,core_attn" : "";
}

// What an engine does of its own, whatever the stages are: its knobs mean something.
bool MeansSomething(const InstanceSpec& spec) {
  const bool shards = spec.strategy == ShardingStrategy::kOptimGradsParams;
  if (spec.strategy == ShardingStrategy::kNoShard && (spec.outer > 1 || spec.overlap_param_gather))
    return false;
  return (spec.reshard_after_forward == 1 || shards) &&
         (spec.outer_strategy == OuterStrategy::kNoShard || (shards && spec.outer > 1)) &&
         (spec.optimizer != Optimizer::kMuon || spec.strategy == ShardingStrategy::kLayerWise);
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
  AddSetter("strategy", {"no_shard", "optim", "optim_grads", "optim_grads_params", "layer_wise"},
            SetStrategy);
  AddKnobs({"num_optimizer_instances", "microbatches", "units"});
  AddSetter("1f1b", {"none", "1f1b", "1f1b dw", "1f1b er", "1f1b dw er"}, SetSchedule);
  AddSetter("optimizer", {"sgd", "adamw", "muon"}, SetOptimizer);
  AddSetter("recompute", {"nothing", "norm,core_attn"}, SetRecompute);
  AddOtherKnobs();
  RelateStages();
  Relate({"create_all_gather_group", "schedule", "high_priority_a2a_comm_stream"},
         CommScheduleGoes);
}

std::vector<std::vector<uint8_t>> PipelineSpace::EnginesAlone(
    const std::vector<std::string>& of) const {
  std::vector<std::vector<uint8_t>> ways;
  ForEachTuple(of, [&](const std::vector<uint8_t>& tuple, const Case& c) {
    Case alone = c;
    alone.world = 4;
    if (MeansSomething(c.instances.front()) && LegalForOneToken(alone)) ways.push_back(tuple);
  });
  return ways;
}

void PipelineSpace::RelateStages() {
  std::vector<std::string> engine{"strategy",
                                  "num_optimizer_instances",
                                  "optimizer",
                                  "outer_strategy",
                                  "reshard_after_forward",
                                  "layer_wise_layout",
                                  "layer_wise_transport",
                                  "layer_wise_buffer",
                                  "overlap_grad_reduce",
                                  "overlap_param_gather"};
  const std::vector<std::vector<uint8_t>> ways = EnginesAlone(engine);
  std::vector<std::string> factors{
      "world", "stages", "ep", "experts", "microbatches", "strategy", "num_optimizer_instances",
      "units", "1f1b"};
  // Tuples of one grid follow each other: it is derived once.
  Case last;
  bool last_legal = false;
  TupleList tuples;
  ForEachTuple(factors, [&](const std::vector<uint8_t>& tuple, const Case& c) {
    if (!MakesSense(c)) return;
    Case grid = c;
    SetSchedule(grid, 0);
    grid.instances.front().units = InstanceSpec{}.units;
    if (!(grid == last)) {
      last = grid;
      last_legal = LongestSequence(grid.instances.front()) > 0 && LegalForOneToken(grid);
    }
    if (!last_legal) return;
    for (const std::vector<uint8_t>& way : ways) {
      if (std::equal(way.begin(), way.begin() + 2, tuple.begin() + 5))
        tuples.Add(tuple, Tuple(way).subspan(2));
    }
  });
  factors.insert(factors.end(), engine.begin() + 2, engine.end());
  AddRelation(factors, std::move(tuples));
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
