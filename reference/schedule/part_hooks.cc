#include "reference/schedule/part_hooks.h"

#include <algorithm>
#include <stdexcept>

namespace reference {

PartHooks::PartHooks(Context& context, GatherPipeline& gathers, ReducePipeline& reductions)
    : c_(context),
      gathers_(gathers),
      reductions_(reductions),
      bucket_group_(context.plan.buckets.size()),
      backward_to_come_(context.plan.unit_modules.size()) {
  for (size_t g = 0; g < c_.plan.groups.size(); ++g) {
    for (int32_t b : c_.plan.groups[g].buckets)
      bucket_group_[static_cast<size_t>(b)] = static_cast<int32_t>(g);
  }
}

std::vector<int32_t> PartHooks::GroupsOf(const Operation& operation, spf_table table) const {
  std::vector<int32_t> groups;
  const spf_uses& uses = operation.uses();
  for (int32_t i = 0; i < uses.n; ++i) {
    if (uses.use[i].table != table) continue;
    const int32_t bucket = c_.plan.param_bucket[static_cast<size_t>(uses.use[i].id)];
    const int32_t group = bucket_group_[static_cast<size_t>(bucket)];
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  return groups;
}

UnitProgress PartHooks::Start(const MicrobatchPlan& plan) const {
  UnitProgress progress;
  progress.gradients_left.resize(c_.plan.groups.size());
  progress.handed_over.resize(c_.plan.groups.size());
  progress.chunks_to_come.resize(c_.plan.groups.size());
  for (int32_t i = 0; i < plan.program().n_nodes; ++i) {
    const spf_node& node = plan.program().nodes[i];
    if (node.chunk == plan.chunk()) continue;
    for (int32_t g : GroupsOf({&node, SPF_WGRAD}, SPF_IN_GRAD)) {
      progress.handed_over[static_cast<size_t>(g)] = true;  // by another chunk
      if (node.chunk < plan.chunk()) progress.chunks_to_come[static_cast<size_t>(g)] = true;
    }
  }
  for (const PlannedTurn& turn : plan.turns()) {
    std::vector<int32_t>& order =
        turn.backward() ? progress.backward_order : progress.forward_order;
    for (const Operation& operation : turn.operations) {
      for (int32_t g : GroupsOf(operation, SPF_IN_PARAM)) {
        if (std::find(order.begin(), order.end(), g) == order.end()) order.push_back(g);
      }
      for (int32_t g : GroupsOf(operation, SPF_IN_GRAD))
        ++progress.gradients_left[static_cast<size_t>(g)];
    }
    for (int32_t unit : OtherUnits(plan, turn))
      ++(turn.backward() ? progress.backward_left : progress.forward_left)[unit];
  }
  return progress;
}

void PartHooks::BeforeOperation(const MicrobatchPlan& plan, UnitProgress& progress,
                                const PlannedTurn& turn, const Operation& operation) {
  const auto& order = turn.backward() ? progress.backward_order : progress.forward_order;
  for (int32_t g : GroupsOf(operation, SPF_IN_PARAM)) gathers_.AcquireGroup(order, g);
  if (turn.backward()) {
    EnterBackward(plan, progress, operation.node->module);
    reductions_.Begin(GroupsOf(operation, SPF_IN_GRAD));
  } else {
    EnterForward(plan, progress, operation.node->module);
  }
}

// ------------------------------------------------------------------ parameters

void PartHooks::EnterForward(const MicrobatchPlan& plan, UnitProgress& progress, int32_t module) {
  const int32_t position = gathers_.PositionOf(module);
  if (position < 0) return;
  const GatherPipeline::Stage& stage = gathers_.stages()[static_cast<size_t>(position)];
  if (!progress.entered.insert(stage.module).second) return;
  c_.host.Mark(SPF_HOOK_PRE_FORWARD, stage.module, plan.microbatch());
  if (plan.settings().forward_only) return;
  if (stage.unit != kNoUnit && progress.registered.insert(stage.unit).second)
    c_.host.Mark(SPF_HOOK_REGISTER_BACKWARD, stage.module, plan.microbatch());
}

void PartHooks::EnterBackward(const MicrobatchPlan& plan, UnitProgress& progress, int32_t module) {
  const int32_t unit = UnitOf(module);
  if (unit != kNoUnit && progress.in_backward.insert(unit).second)
    c_.host.Mark(SPF_HOOK_PRE_BACKWARD, ModuleOf(unit), plan.microbatch());
}

void PartHooks::AfterTurn(const MicrobatchPlan& plan, UnitProgress& progress,
                          const PlannedTurn& turn) {
  if (turn.backward()) CountGradients(plan, progress, turn);
  ReleaseOtherUnits(plan, progress, turn);
  if (turn.turn.layer < 0) return;
  const LayerNodes& layer = plan.nodes().layers[static_cast<size_t>(turn.turn.layer)];
  const int32_t unit = UnitOf(layer.module);
  if (unit == kNoUnit) return;
  const Part last_forward = layer.moe ? Part::kCombine : Part::kMlp;
  const Action last_backward =
      plan.settings().delay_wgrad ? Action::kWeightGrads : Action::kBackward;
  if (turn.turn.action == Action::kForward && turn.turn.part == last_forward)
    ReleaseAfterForward(plan, progress, unit);
  if (turn.turn.action == last_backward && turn.turn.part == Part::kPreDispatch)
    ReleaseAfterBackward(plan, progress, unit);
}

std::set<int32_t> PartHooks::OtherUnits(const MicrobatchPlan& plan, const PlannedTurn& turn) const {
  std::set<int32_t> units;
  for (const Operation& operation : turn.operations) units.insert(UnitOf(operation.node->module));
  units.erase(kNoUnit);
  for (const LayerNodes& layer : plan.nodes().layers) units.erase(UnitOf(layer.module));
  return units;
}

void PartHooks::ReleaseOtherUnits(const MicrobatchPlan& plan, UnitProgress& progress,
                                  const PlannedTurn& turn) {
  for (int32_t unit : OtherUnits(plan, turn)) {
    if (turn.backward()) {
      if (--progress.backward_left[unit] == 0) ReleaseAfterBackward(plan, progress, unit);
    } else {
      if (--progress.forward_left[unit] == 0) ReleaseAfterForward(plan, progress, unit);
    }
  }
}

void PartHooks::ReleaseAfterForward(const MicrobatchPlan& plan, UnitProgress& progress,
                                    int32_t unit) {
  c_.host.Mark(SPF_HOOK_POST_FORWARD, ModuleOf(unit), plan.microbatch());
  progress.entered.erase(ModuleOf(unit));
  if (backward_to_come_[static_cast<size_t>(unit)]) {
    gathers_.ReleaseLazily(unit);
  } else {
    gathers_.Release(unit);
  }
}

void PartHooks::ReleaseAfterBackward(const MicrobatchPlan& plan, UnitProgress& progress,
                                     int32_t unit) {
  if (progress.in_backward.erase(unit) > 0)
    c_.host.Mark(SPF_HOOK_POST_BACKWARD, ModuleOf(unit), plan.microbatch());
  gathers_.Release(unit);
  backward_to_come_[static_cast<size_t>(unit)] = false;
}

// ------------------------------------------------------------------ gradients

void PartHooks::CountGradients(const MicrobatchPlan& plan, UnitProgress& progress,
                               const PlannedTurn& turn) {
  for (const Operation& operation : turn.operations) {
    for (int32_t g : GroupsOf(operation, SPF_IN_GRAD)) {
      if (--progress.gradients_left[static_cast<size_t>(g)] == 0) HandOver(plan, progress, g);
    }
  }
}

void PartHooks::HandOver(const MicrobatchPlan& plan, UnitProgress& progress, int32_t group) {
  progress.handed_over[static_cast<size_t>(group)] = true;
  const int32_t unit = c_.GroupOf(group).unit;
  if (unit != kNoUnit) {
    const std::vector<int32_t>& siblings = c_.plan.unit_groups[static_cast<size_t>(unit)];
    const bool last = std::all_of(siblings.begin(), siblings.end(), [&](int32_t g) {
      return progress.handed_over[static_cast<size_t>(g)];
    });
    if (last) c_.host.Mark(SPF_HOOK_ACCUMULATE, ModuleOf(unit), plan.microbatch());
  }
  // Backward goes through the chunks from the last to the first: only the first is the end.
  const bool last = plan.microbatch() == c_.config.microbatches - 1 &&
                    !progress.chunks_to_come[static_cast<size_t>(group)];
  reductions_.Accumulate({group}, last);
}

// ------------------------------------------------------------------ the root

// In a pipeline a microbatch comes by once per chunk: forward from the first on, backward from the
// last on. Root hooks are announced for the first and last time.
void PartHooks::RootForward(const MicrobatchPlan& plan) {
  if (plan.chunk() == 0) c_.host.Mark(SPF_HOOK_FORWARD, 0, plan.microbatch());
}

void PartHooks::RootPreBackward(const MicrobatchPlan& plan, const UnitProgress& progress) {
  if (plan.chunk() == c_.config.chunks - 1)
    c_.host.Mark(SPF_HOOK_ROOT_PRE_BACKWARD, 0, plan.microbatch());
  std::fill(backward_to_come_.begin(), backward_to_come_.end(), true);
  gathers_.Prefetch(progress.backward_order);
}

// What nobody added to comes in the order of bucket groups, the same on all ranks.
void PartHooks::RootPostBackward(const MicrobatchPlan& plan, UnitProgress& progress) {
  if (plan.chunk() == 0) c_.host.Mark(SPF_HOOK_ROOT_POST_BACKWARD, 0, plan.microbatch());
  for (size_t g = 0; g < c_.plan.groups.size(); ++g) {
    if (progress.gradients_left[g] != 0)
      throw std::logic_error("a gradient is missing at the end of backward");
    if (progress.handed_over[g] || plan.chunk() > 0) continue;
    reductions_.Begin({static_cast<int32_t>(g)});
    HandOver(plan, progress, static_cast<int32_t>(g));
  }
  reductions_.Drain();
  std::fill(backward_to_come_.begin(), backward_to_come_.end(), false);
}

}  // namespace reference
