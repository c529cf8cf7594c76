// part_hooks.h: how do parameters come and go, and gradients leave, under a schedule of parts?
//
// No layer runs as a whole here, so nothing happens "before the layer" or "after the layer". The
// life cycle of units (fsdp/hooks.h) is driven by operations and turns instead:
//
//   gather              before the first operation that reads a parameter of the bucket group. The
//                       one that the pass needs next is launched ahead (gather_pipeline.h)
//   release, forward    after the layer's last forward part: combine, or mlp in a dense layer.
//                       At once, but only marked while the unit's backward is still to come in this
//                       step: the other microbatch is about to need it (gather_pipeline.h)
//   release, backward   after the layer's last backward work: pre_dispatch backward, or its weight
//                       gradients where they are delayed. At once
//   other units         an embedding, say: after the last turn of each pass with an operation of it
//   reduction           after the turn with the last gradient of a bucket group, delayed ones
//                       included
//   root pre-backward   once per step with a backward side: every unit's backward is to come, and
//                       what it needs first is launched ahead
//   root post-backward  once per such step: what got no gradient contributes zeros (in a pipeline
//                       after the first chunk, the last to go backward), and all reductions are
//                       waited for
//
// Both microbatches may be in the same layer. Releases act on units and needs on bucket groups: a
// release takes parameters away that the other microbatch needs again later, never ones that an
// operation that was issued before still reads, because all readers and the release are on compute
// (plan_operations.cc refuses a reader elsewhere).
#pragma once
#include <map>
#include <set>

#include "reference/fsdp/gather_pipeline.h"
#include "reference/fsdp/reduce_pipeline.h"
#include "reference/schedule/microbatch_plan.h"

namespace reference {

// Where one microbatch stands with respect to units and bucket groups. Kept beside its plan.
struct UnitProgress {
  std::vector<int32_t> forward_order, backward_order;  // bucket groups by first need in each pass
  std::vector<int32_t> gradients_left;  // by bucket group: operations to come that add to it
  std::vector<bool> handed_over;        // by bucket group
  std::vector<bool> chunks_to_come;     // by bucket group: another chunk's backward adds to it
  std::set<int32_t> entered;  // modules of the forward order (gather_pipeline.h), for marks
  std::set<int32_t> registered, in_backward;  // units, for marks
  // Units that are no layers: turns to come.
  std::map<int32_t, int32_t> forward_left, backward_left;
};

class PartHooks {
 public:
  PartHooks(Context& context, GatherPipeline& gathers, ReducePipeline& reductions);

  UnitProgress Start(const MicrobatchPlan& plan) const;
  void RootForward(const MicrobatchPlan& plan);
  void BeforeOperation(const MicrobatchPlan& plan, UnitProgress& progress, const PlannedTurn& turn,
                       const Operation& operation);
  void AfterTurn(const MicrobatchPlan& plan, UnitProgress& progress, const PlannedTurn& turn);
  void RootPreBackward(const MicrobatchPlan& plan, const UnitProgress& progress);
  void RootPostBackward(const MicrobatchPlan& plan, UnitProgress& progress);

 private:
  // Bucket groups that the operation reads parameters of (SPF_IN_PARAM) or adds gradients to
  // (SPF_IN_GRAD), each once.
  std::vector<int32_t> GroupsOf(const Operation& operation, spf_table table) const;
  void EnterForward(const MicrobatchPlan& plan, UnitProgress& progress, int32_t module);
  void EnterBackward(const MicrobatchPlan& plan, UnitProgress& progress, int32_t module);
  // Units of the turn's operations, each once, that are no layers of the program.
  std::set<int32_t> OtherUnits(const MicrobatchPlan& plan, const PlannedTurn& turn) const;
  void ReleaseOtherUnits(const MicrobatchPlan& plan, UnitProgress& progress,
                         const PlannedTurn& turn);
  void ReleaseAfterForward(const MicrobatchPlan& plan, UnitProgress& progress, int32_t unit);
  void ReleaseAfterBackward(const MicrobatchPlan& plan, UnitProgress& progress, int32_t unit);
  void CountGradients(const MicrobatchPlan& plan, UnitProgress& progress, const PlannedTurn& turn);
  void HandOver(const MicrobatchPlan& plan, UnitProgress& progress, int32_t group);
  int32_t UnitOf(int32_t module) const {
    return module < 0 ? kNoUnit : c_.plan.module_unit[static_cast<size_t>(module)];
  }
  int32_t ModuleOf(int32_t unit) const { return c_.plan.unit_modules[static_cast<size_t>(unit)]; }

  Context& c_;
  GatherPipeline& gathers_;
  ReducePipeline& reductions_;
  std::vector<int32_t> bucket_group_;   // by bucket
  std::vector<bool> backward_to_come_;  // by unit: in the running step
};

}  // namespace reference
