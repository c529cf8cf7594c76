#include "reference/fsdp/gather_pipeline.h"

#include <algorithm>

#include "reference/fsdp/collectives.h"

namespace reference {

namespace {

// Whether the stage of this module is where the group's parameters are first needed: one of them
// belongs to the unit, or for a stage outside units to the module itself.
bool Needs(const spf_model& model, const ModelPlan& plan, const GatherPipeline::Stage& stage,
           int32_t group) {
  for (int32_t b : plan.groups[static_cast<size_t>(group)].buckets) {
    for (const ParamShape& param : plan.buckets[static_cast<size_t>(b)].params) {
      const int32_t owner = model.params[param.param].module;
      const int32_t unit = plan.module_unit[static_cast<size_t>(owner)];
      if (stage.unit == kNoUnit ? owner == stage.module : unit == stage.unit) return true;
    }
  }
  return false;
}

}  // namespace

GatherPipeline::GatherPipeline(Context& context)
    : c_(context), groups_(context.plan.groups.size()) {
  const ModelPlan& plan = c_.plan;
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (int32_t b : plan.groups[g].buckets) groups_[g].bytes += c_.bucket(b).FullBytes();
    groups_[g].done = c_.host.Event();
  }
  const spf_model& model = c_.host.model();
  for (int32_t m = 0; m <= model.n_modules; ++m) {
    for (const Reentry& reentry : plan.reentries) {
      if (reentry.before == m) AddUnitStage(StageAgain(reentry.unit));
    }
    if (m == model.n_modules) break;
    const int32_t unit = plan.module_unit[static_cast<size_t>(m)];
    const bool is_unit = unit != kNoUnit && plan.unit_modules[static_cast<size_t>(unit)] == m;
    Stage stage{m, unit, {}};
    if (is_unit || unit == kNoUnit) {
      for (int32_t g = 0; g < static_cast<int32_t>(groups_.size()); ++g) {
        if (Needs(model, plan, stage, g)) stage.groups.push_back(g);
      }
    }
    if (is_unit || !stage.groups.empty()) {
      position_.push_back(static_cast<int32_t>(forward_.size()));
      if (is_unit) {
        AddUnitStage(stage);
      } else {
        forward_.push_back(stage);
      }
    } else {
      position_.push_back(
          unit == kNoUnit ? -1 : position_[static_cast<size_t>(model.modules[m].parent)]);
    }
  }
}

void GatherPipeline::AddUnitStage(Stage stage) {
  forward_.push_back(stage);
  if (!c_.plan.unit_in_backward[static_cast<size_t>(stage.unit)]) stage.groups.clear();
  backward_.insert(backward_.begin(), std::move(stage));
}

GatherPipeline::Stage GatherPipeline::StageAgain(int32_t unit) const {
  const int32_t module = c_.plan.unit_modules[static_cast<size_t>(unit)];
  return forward_[static_cast<size_t>(PositionOf(module))];
}

int32_t GatherPipeline::NextOf(Pass pass, int32_t unit, int32_t after) const {
  const std::vector<Stage>& order = Order(pass);
  const auto matches = [&](const Stage& stage) { return stage.unit == unit; };
  auto found = std::find_if(order.begin() + after + 1, order.end(), matches);
  if (found == order.end()) found = std::find_if(order.begin(), order.end(), matches);
  return static_cast<int32_t>(found - order.begin());
}

void GatherPipeline::GatherAll() {
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].state == State::kAbsent) Launch(static_cast<int32_t>(g));
  }
  for (Group& group : groups_) WaitFor(group);
}

void GatherPipeline::Acquire(Pass pass, int32_t position) {
  const Stage& stage = Order(pass)[static_cast<size_t>(position)];
  for (int32_t g : stage.groups) {
    if (At(g).state == State::kAbsent) Launch(g);
    At(g).ahead = false;
  }
  LaunchAhead(pass, position);
  for (int32_t g : stage.groups) WaitFor(At(g));
}

void GatherPipeline::AcquireGroup(const std::vector<int32_t>& order, int32_t group) {
  Group& state = At(group);
  state.marked = false;
  if (state.state == State::kAbsent) Launch(group);
  state.ahead = false;
  const auto place = std::find(order.begin(), order.end(), group);
  if (place != order.end()) LaunchAhead(order, static_cast<size_t>(place - order.begin()) + 1);
  WaitFor(state);
}

void GatherPipeline::LaunchAhead(const std::vector<int32_t>& order, size_t next) {
  if (!c_.config.overlap_param_gather) return;
  for (; next < order.size(); ++next) {
    Group& state = At(order[next]);
    if (state.state != State::kAbsent && !state.marked) continue;
    if (!WithinLimit(state.bytes)) return;
    if (state.state == State::kAbsent) Launch(order[next]);
    state.marked = false;  // marked and wanted again: it stays
    state.ahead = true;
  }
}

void GatherPipeline::Need(int32_t group) {
  if (At(group).state == State::kAbsent) Launch(group);
  WaitFor(At(group));
}

// In order, and never past the first stage that does not fit: skipping one would change the order
// of gathers.
void GatherPipeline::LaunchAhead(Pass pass, int32_t position) {
  const std::vector<Stage>& order = Order(pass);
  for (size_t next = static_cast<size_t>(position + 1); next < order.size(); ++next) {
    // A unit is released before it comes again: nothing beyond that place can be in order yet.
    const auto same = [&](const Stage& stage) { return stage.unit == order[next].unit; };
    if (order[next].unit != kNoUnit && std::any_of(order.begin() + std::max(position, 0),
                                                   order.begin() + static_cast<int>(next), same))
      return;
    uint64_t bytes = 0;
    for (int32_t g : order[next].groups) bytes += At(g).state == State::kAbsent ? At(g).bytes : 0;
    if (bytes == 0) continue;
    if (!WithinLimit(bytes)) return;
    for (int32_t g : order[next].groups) {
      if (At(g).state != State::kAbsent) continue;
      Launch(g);
      At(g).ahead = true;
    }
  }
}

bool GatherPipeline::WithinLimit(uint64_t bytes) const {
  uint64_t ahead = 0;
  for (const Group& group : groups_) ahead += group.ahead ? group.bytes : 0;
  if (!c_.config.prefetch_limit_bytes) return ahead == 0;  // the next unit, whatever its size
  return ahead + bytes <= static_cast<uint64_t>(*c_.config.prefetch_limit_bytes);
}

void GatherPipeline::Launch(int32_t group) {
  const BucketGroup& buckets = c_.GroupOf(group);
  Group& state = At(group);
  FreeMarked();
  for (int32_t id : buckets.buckets) {
    Bucket& b = c_.bucket(id);
    if (b.full_weights) continue;
    b.gathered = c_.buffers.Take(c_.streams.compute, b.FullBytes(), {&b.groups.gather},
                                 spf::For(SPF_FOR_PARAM_FULL, b.module));
  }
  if (state.outer_stale) {
    LaunchOuter(buckets);
    c_.host.After(c_.streams.gather, c_.streams.outer_gather);
    state.outer_stale = false;
  } else {
    c_.host.After(c_.streams.gather, c_.streams.compute);
  }
  CollectiveBatch batch(c_.host, c_.bucket(buckets.buckets[0]).groups.gather, c_.streams.gather);
  for (int32_t id : buckets.buckets) {
    const Bucket& b = c_.bucket(id);
    batch.AllGather(b.plan.dtype, b.InnerShardOfModel(), b.Full(), b.inner_shard_size(),
                    spf::For(SPF_FOR_PARAM_FULL, b.module));
  }
  batch.Issue();
  c_.host.Record(state.done, c_.streams.gather);
  state.state = State::kInFlight;
}

// Each outer rank has installed its slice of the inner shard: collect the others' slices, in place.
void GatherPipeline::LaunchOuter(const BucketGroup& group) {
  c_.host.After(c_.streams.outer_gather, c_.streams.compute);
  CollectiveBatch batch(c_.host, c_.bucket(group.buckets[0]).groups.outer, c_.streams.outer_gather);
  for (int32_t id : group.buckets) {
    const Bucket& b = c_.bucket(id);
    batch.AllGather(b.plan.dtype, b.ShardOfModel(), b.model, b.shard_size(),
                    spf::For(SPF_FOR_PARAM_SHARD, b.module));
  }
  batch.Issue();
}

void GatherPipeline::WaitFor(Group& group) {
  if (group.state == State::kInFlight) c_.host.Wait(c_.streams.compute, group.done);
  group.state = State::kReady;
  group.ahead = false;
}

void GatherPipeline::Free(int32_t group) {
  Group& state = At(group);
  if (state.state == State::kAbsent) return;
  WaitFor(state);
  for (int32_t id : c_.GroupOf(group).buckets)
    c_.buffers.Give(c_.streams.compute, c_.bucket(id).gathered);
  state.state = State::kAbsent;
  state.marked = false;
}

void GatherPipeline::FreeMarked() {
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].marked) Free(static_cast<int32_t>(g));
  }
}

void GatherPipeline::Release(int32_t unit) {
  if (!c_.config.ShardsParams()) return;
  for (int32_t g : c_.plan.unit_groups[static_cast<size_t>(unit)]) Free(g);
}

void GatherPipeline::ReleaseLazily(int32_t unit) {
  if (!c_.config.ShardsParams()) return;
  for (int32_t g : c_.plan.unit_groups[static_cast<size_t>(unit)])
    At(g).marked = At(g).state != State::kAbsent;
}

void GatherPipeline::Reset() {
  if (!c_.config.ShardsParams()) return;
  for (size_t g = 0; g < groups_.size(); ++g) Free(static_cast<int32_t>(g));
}

void GatherPipeline::Invalidate() {
  for (Group& group : groups_) {
    // Without sharding every rank has installed all of its weights itself.
    group.state = c_.config.strategy == Strategy::kNoShard ? State::kReady : State::kAbsent;
    group.outer_stale = c_.config.outer_shards;
  }
}

void GatherPipeline::Destroy() {
  for (Group& group : groups_) spf::Check(c_.host.DestroyEvent(group.done));
}

}  // namespace reference
