#include "reference/engine.h"

#include <utility>

#include "reference/core/at.h"
#include "reference/core/unit_buckets.h"
#include "reference/layerwise/layer_buckets.h"
#include "reference/plan/print.h"

namespace reference {

void Engine::Configure() {
  c_.config =
      ReadConfig([this](const char* name) { return c_.host.raw()->knob(c_.host.raw(), name); });
  CheckSizes();
  CheckImplemented(c_.config);
  if (c_.config.nccl_ub && !SPF_HAS(c_.host.raw(), group_register))
    throw Unsupported("nccl_ub = 1 needs a host that has group_register (ABI 1.1)");
  for (const std::string& warning : Warnings(c_.config)) c_.host.Explain(warning);
  const spf_model& model = c_.host.model();
  GroupDemand demand;
  demand.dense_twins = c_.config.dense_twins;
  demand.expert_twins = c_.config.expert_twins;
  demand.optimizer_instances = c_.config.optimizer_instances;
  demand.reshard_after_forward = c_.config.reshard_after_forward;
  demand.split_samples = c_.config.context_parallel;
  for (int32_t v = 0; v < model.n_values; ++v)
    demand.pipeline |= (model.values[v].flags & (SPF_VALUE_FROM_PREV | SPF_VALUE_TO_NEXT)) != 0;
  for (const spf_param& param : ParamsOf(model)) {
    demand.split_params |= param.tp_dim >= 0;
    demand.experts |= IsExpert(param);
  }
  ConfigureGroups(demand);
  if (!idle_) PlanBuckets();
}

void Engine::PlanBuckets() {
  const spf_model& model = c_.host.model();
  std::vector<const spf_program*> programs;
  for (int64_t step = 0; step < 2; ++step) {
    for (int32_t m = 0; m < c_.config.microbatches; ++m)
      programs.push_back(&c_.host.Program(step, m));
  }
  std::vector<bool> muon;
  if (c_.config.optimizer == OptimizerKind::kMuon) muon = SteppedByMuon(model);
  if (c_.config.LayerWise()) {
    LayerPlan layers = PlanLayers(model, c_.config, c_.groups, programs, muon);
    c_.buckets = MakeLayerBuckets(c_.config, c_.groups, layers);
    c_.plan = std::move(layers.model);
    return;
  }
  c_.plan = PlanModel(model, c_.config.unit_types, c_.config.bucket_size, programs, muon);
  if (c_.config.backward_copies) AddBackwardCopies(c_.plan);
  c_.buckets = MakeBuckets(c_.config, c_.groups, c_.plan);
}

void Engine::ConfigureGroups(const GroupDemand& demand) {
  if (!c_.config.own_groups) {
    c_.groups = PickGroups(AskForGroups(c_.host, demand), demand);
    c_.groups.all = {Describe(c_.host, "world", c_.host.Group("world"))};
    return;
  }
  const spf_group world = c_.host.Group("world");
  if (world == nullptr)
    throw GroupError("group world is needed to build the grid and was not provided");
  const int32_t world_size = c_.host.SizeIn(world);
  GridSizes& grid = c_.config.grid;
  if (grid.span == 0) grid.span = world_size - grid.offset;
  std::vector<GroupFamily> families = FamiliesOf(grid, world_size);
  if (demand.dense_twins) families.push_back(TwinOf(families, false));
  // All ranks create the same groups: one whose stage has no experts cannot know that others have.
  if (demand.expert_twins) families.push_back(TwinOf(families, true));
  if (demand.reshard_after_forward > 1)
    families.push_back(ReshardOf(families, demand.reshard_after_forward));
  const GroupCollection collection = CreateGroups(c_.host, families, created_groups_);
  const int32_t me = c_.host.RankIn(world);
  idle_ = me < grid.offset || me >= grid.offset + grid.span;
  if (idle_) return;
  c_.groups = PickGroups(collection, demand);
  c_.groups.all = {collection.Get("dp_cp"), collection.Get("tp"), collection.Get("pp")};
}

// Sizes of axes come from the grid, or from the groups that were handed in; asked for only where
// something depends on them.
void Engine::CheckSizes() const {
  if (!c_.config.overlap_moe && c_.config.chunks == 1) return;
  const auto size_of = [this](const char* axis, int32_t in_grid) {
    if (c_.config.own_groups) return in_grid;
    const spf_group group = c_.host.Group(axis);
    return group == nullptr ? 1 : c_.host.SizeIn(group);
  };
  CheckAxes(c_.config, size_of("ep", c_.config.grid.ep), size_of("pp", c_.config.grid.pp));
}

void Engine::CreateStreams() {
  c_.streams.compute = c_.host.Stream("compute");
  c_.streams.gather = c_.host.Stream("gather");
  c_.streams.reduce = c_.host.Stream("reduce");
  if (c_.config.optimizer_instances > 1) c_.streams.outer_reduce = c_.host.Stream("outer_reduce");
  if (c_.config.outer_shards) c_.streams.outer_gather = c_.host.Stream("outer_gather");
  // As in CUDA, the lower number goes first.
  if (c_.config.overlap_moe)
    c_.streams.a2a = c_.host.Stream("a2a", c_.config.high_priority_a2a ? -1 : 0);
}

void Engine::Build() {
  if (idle_) return;
  CreateStreams();
  reductions_ = std::make_unique<Reductions>(c_);
  executor_ = std::make_unique<Executor>(c_, store_, *reductions_, statistics_, optimizer_);
  store_.Create();
  reductions_->Create();
  statistics_.Create();
  stale_ = backward_stale_ = !c_.config.LayerWise();
  if (c_.config.meta_init) return;
  Materialise();
  store_.PublishParams();
}

void Engine::Materialise() {
  if (std::exchange(has_values_, true)) return;
  store_.AskForInitial();
  if (c_.config.LayerWise()) {
    store_.InstallInitialEverywhere();
  } else {
    store_.Install();
  }
}

PlanFacts Engine::Facts(std::optional<int64_t> step) const {
  PlanFacts facts{c_.host.model(), c_.config, c_.plan};
  for (const BucketGroup& group : c_.plan.groups) {
    GroupFacts& of = facts.groups.emplace_back();
    for (int32_t id : group.buckets) {
      const Bucket& b = At(c_.buckets, id);
      of.bytes += b.FullBytes();
      of.trainable |= b.plan.trainable && !group.for_backward;
      of.travels = b.groups.gather.size() > 1 && b.size() > 0;
    }
  }
  facts.pipeline_ranks = std::max(c_.groups.pp.size(), 1);
  facts.pipeline_rank = c_.groups.pp.rank;
  facts.stale = stale_;
  facts.backward_stale = backward_stale_;
  for (int32_t m = 0; step && m < c_.config.microbatches; ++m)
    facts.programs.push_back(&c_.host.Program(*step, m));
  return facts;
}

void Engine::TrainStep(int64_t step) {
  if (idle_) return;
  Materialise();
  executor_->Run(PlanTrainStep(Facts(step)));
  stale_ = backward_stale_ = !c_.config.GathersAtInstall();
}

std::string Engine::PlanText(int64_t step, bool all) const {
  if (idle_) return "This rank is outside the grid: nothing.\n";
  PlanFacts facts = Facts(step);
  if (step > 0)  // as the step before leaves it
    facts.stale = facts.backward_stale = !c_.config.GathersAtInstall();
  const Plan plan = PlanTrainStep(facts);
  return all ? PrintSteps(plan, facts) : PrintTable(plan, facts);
}

void Engine::EvalStep(int64_t step) {
  if (idle_) return;
  Materialise();
  executor_->Run(PlanEvalStep(Facts(step)));
  stale_ = false;  // forward's copies: those of backward are as they were
}

void Engine::Save(const std::string& folder) {
  if (idle_) return;
  Materialise();
  checkpoint_.Save(folder);
}

void Engine::Load(const std::string& folder) {
  if (idle_) return;
  checkpoint_.Load(folder);
  has_values_ = true;
  store_.PublishParams();
  executor_->Run(PlanInstall(Facts()));
  stale_ = backward_stale_ = !c_.config.GathersAtInstall();
}

void Engine::Destroy() {
  if (executor_) {
    executor_->Destroy();
    store_.Destroy();
    statistics_.Destroy();
    reductions_->Destroy();
    c_.buffers.Destroy();
  }
  for (spf_stream stream : {c_.streams.compute, c_.streams.gather, c_.streams.reduce,
                            c_.streams.outer_reduce, c_.streams.outer_gather, c_.streams.a2a}) {
    if (stream != nullptr) spf::Check(c_.host.DestroyStream(stream));
  }
  DestroyGroups();
}

void Engine::GiveBack() {
  c_.buffers.GiveBack();
  c_.host.GiveBack();
  DestroyGroups();
}

void Engine::DestroyGroups() {
  for (spf_group group : std::exchange(created_groups_, {})) c_.host.DestroyGroup(group);
}

}  // namespace reference
