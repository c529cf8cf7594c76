// driver.h: who calls the hooks, and when?
//
// Walks the operations of one microbatch and turns "the next operation belongs to this module" into
// the life cycle of units. Collectives are issued at the places of an order that all ranks share; a
// unit that this rank's program does not use is visited too, between its neighbours, so that every
// rank takes part (FS-11).
#pragma once
#include "reference/fsdp/hooks.h"
#include "reference/fsdp/operation_runner.h"

namespace reference {

class Driver {
 public:
  Driver(Context& context, Hooks& hooks, GatherPipeline& gathers, OperationRunner& runner);

  // Forward and backward; publishes LOSS.
  void TrainMicrobatch(int64_t step, int32_t microbatch);
  // Forward only; publishes LOSS.
  void EvalMicrobatch(int64_t step, int32_t microbatch);

 private:
  // One pass over one microbatch.
  struct Walk {
    int32_t microbatch = 0;
    bool training = false;
    std::vector<Operation> operations;
    std::vector<std::vector<ValueRef>> deaths;
    Activations activations;
    size_t next = 0;                       // operation
    int32_t position = -1;                 // forward: last place of the order that was visited
    int32_t backward_position = -1;        // the same, backward
    int32_t open = kNoUnit;                // the unit whose window is open
    std::set<int32_t> registered;          // units whose backward is armed
    std::vector<int32_t> operations_left;  // by unit: backward operations to come
  };
  Walk StartWalk(const spf_program& program, std::vector<Operation> operations, int32_t microbatch,
                 bool training);
  void Forward(Walk& walk);
  void Backward(Walk& walk);
  void EnterForward(Walk& walk, const spf_node& node);
  int32_t PositionOf(const spf_node& node) const;
  void VisitForward(Walk& walk, int32_t position);
  void CloseForward(Walk& walk);
  void EnterBackward(Walk& walk, int32_t unit);
  void VisitBackward(Walk& walk, int32_t position);
  void CloseBackward(Walk& walk);
  void Run(Walk& walk, const Operation& operation);
  int32_t UnitOf(const Operation& operation) const {
    return c_.plan.module_unit[static_cast<size_t>(operation.node->module)];
  }

  Context& c_;
  Hooks& hooks_;
  GatherPipeline& gathers_;
  OperationRunner& runner_;
  Recompute recompute_;
};

}  // namespace reference
