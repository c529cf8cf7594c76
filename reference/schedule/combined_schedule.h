// combined_schedule.h: how does a step of several microbatches run with all-to-alls hidden?
//
// Microbatch k goes forward while microbatch k - 1 goes backward, one combined step after the other
// (issue_order.h). The host issues turn after turn; streams and each microbatch's event decide what
// runs at the same time. Eval is sequential (fsdp/driver.h).
#pragma once
#include <memory>

#include "reference/fsdp/operation_runner.h"
#include "reference/schedule/part_hooks.h"

namespace reference {

class CombinedSchedule {
 public:
  CombinedSchedule(Context& context, GatherPipeline& gathers, ReducePipeline& reductions,
                   OperationRunner& runner);

  // Forward and backward of all microbatches; publishes LOSS of each.
  void TrainMicrobatches(int64_t step);

 private:
  // A microbatch between its forward and its backward.
  struct InFlight {
    MicrobatchPlan plan;
    UnitProgress progress;
  };
  void RunStep(int64_t step, const StepSides& sides);
  void RunTurn(InFlight& microbatch, const Turn& turn);
  void RunOperations(InFlight& microbatch, const PlannedTurn& turn);

  Context& c_;
  OperationRunner& runner_;
  PartHooks hooks_;
  ScheduleSettings settings_;
  std::unique_ptr<InFlight> forward_, backward_;  // never more than these two
};

}  // namespace reference
