#include "reference/fsdp/hooks.h"

namespace reference {

void Hooks::ZeroGrad() {
  c_.host.Mark(SPF_HOOK_ZERO_GRAD, 0, -1);
  reductions_.ZeroGrad();
}

void Hooks::StartParamSync() {
  c_.host.Mark(SPF_HOOK_START_PARAM_SYNC, 0, 0);
  if (c_.config.overlap_param_gather) {
    gathers_.Prefetch(Pass::kForward);
  } else if (!c_.config.overlap_moe) {  // a schedule of parts gathers at each group's first use
    gathers_.GatherAll();
  }
}

void Hooks::RootForward(int32_t microbatch) { c_.host.Mark(SPF_HOOK_FORWARD, 0, microbatch); }

void Hooks::PreForward(int32_t position, int32_t microbatch) {
  gathers_.Acquire(Pass::kForward, position);
  const GatherPipeline::Stage& stage = gathers_.stages()[static_cast<size_t>(position)];
  c_.host.Mark(SPF_HOOK_PRE_FORWARD, stage.module, microbatch);
}

void Hooks::RegisterBackward(int32_t unit, int32_t microbatch) {
  c_.host.Mark(SPF_HOOK_REGISTER_BACKWARD, ModuleOf(unit), microbatch);
}

void Hooks::PostForward(int32_t unit, int32_t microbatch) {
  c_.host.Mark(SPF_HOOK_POST_FORWARD, ModuleOf(unit), microbatch);
  gathers_.Release(unit);
}

void Hooks::RootPreBackward(int32_t microbatch) {
  c_.host.Mark(SPF_HOOK_ROOT_PRE_BACKWARD, 0, microbatch);
  reductions_.Begin(c_.plan.root_groups);
  gathers_.Prefetch(Pass::kBackward);
}

void Hooks::PreBackward(int32_t position, int32_t microbatch) {
  gathers_.Acquire(Pass::kBackward, position);
  const int32_t unit = gathers_.backward_stages()[static_cast<size_t>(position)].unit;
  reductions_.Begin(c_.plan.unit_groups[static_cast<size_t>(unit)]);
  c_.host.Mark(SPF_HOOK_PRE_BACKWARD, ModuleOf(unit), microbatch);
}

void Hooks::PostBackward(int32_t unit, int32_t microbatch) {
  c_.host.Mark(SPF_HOOK_POST_BACKWARD, ModuleOf(unit), microbatch);
  gathers_.Release(unit);
}

void Hooks::AccumulateUnit(int32_t unit, int32_t microbatch) {
  c_.host.Mark(SPF_HOOK_ACCUMULATE, ModuleOf(unit), microbatch);
  reductions_.Accumulate(c_.plan.unit_groups[static_cast<size_t>(unit)], IsLast(microbatch));
}

void Hooks::RootPostBackward(int32_t microbatch) {
  c_.host.Mark(SPF_HOOK_ROOT_POST_BACKWARD, 0, microbatch);
  reductions_.Accumulate(c_.plan.root_groups, IsLast(microbatch));
}

void Hooks::FinishGradSync() {
  c_.host.Mark(SPF_HOOK_FINISH_GRAD_SYNC, 0, -1);
  reductions_.Finish();
  gathers_.Reset();
}

void Hooks::InstallWeights() {
  c_.host.Mark(SPF_HOOK_INSTALL_WEIGHTS, 0, -1);
  store_.Install();
  gathers_.Invalidate();
}

}  // namespace reference
