// hooks.h: what happens at each point of the life cycle?
//
// The hooks H0 to H12 of Megatron-FSDP as functions. Each announces itself and acts through the two
// pipelines. The driver calls them; there is no other place where parameters are gathered or
// gradients handed over.
#pragma once
#include "reference/fsdp/gather_pipeline.h"
#include "reference/fsdp/param_store.h"
#include "reference/fsdp/reduce_pipeline.h"

namespace reference {

class Hooks {
 public:
  Hooks(Context& context, ParamStore& store, GatherPipeline& gathers, ReducePipeline& reductions)
      : c_(context), store_(store), gathers_(gathers), reductions_(reductions) {}

  void ZeroGrad();        // H12, once per step
  void StartParamSync();  // H11, before the first microbatch of a step, and of an eval
  void RootForward(int32_t microbatch);  // H0
  // H1: the parameters of this place of the forward order become available; what follows is
  // launched ahead.
  void PreForward(int32_t position, int32_t microbatch);
  void RegisterBackward(int32_t unit, int32_t microbatch);  // H2
  void PostForward(int32_t unit, int32_t microbatch);       // H3: reshard
  void RootPreBackward(int32_t microbatch);                 // H4: gradients outside units begin
  // H5: the unit at this place of the backward order is gathered again, its gradients begin.
  void PreBackward(int32_t position, int32_t microbatch);
  void PostBackward(int32_t unit, int32_t microbatch);  // H6: reshard
  void AccumulateUnit(int32_t unit,
                      int32_t microbatch);  // H7: gradients are handed to the reduction
  void RootPostBackward(
      int32_t microbatch);  // H8: gradients outside units, and the last of every backward
  void FinishGradSync();    // H9, once per step
  void InstallWeights();    // H10, after the optimizer and after load

 private:
  bool IsLast(int32_t microbatch) const { return microbatch == c_.config.microbatches - 1; }
  int32_t ModuleOf(int32_t unit) const { return c_.plan.unit_modules[static_cast<size_t>(unit)]; }

  Context& c_;
  ParamStore& store_;
  GatherPipeline& gathers_;
  ReducePipeline& reductions_;
};

}  // namespace reference
