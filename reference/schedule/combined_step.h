// combined_step.h: how does one combined step run: one microbatch forward, another one backward?
//
// The host issues turn after turn (issue_order.h); streams and each microbatch's event decide what
// runs at the same time.
#pragma once
#include <functional>
#include <memory>

#include "reference/fsdp/operation_runner.h"
#include "reference/schedule/part_hooks.h"

namespace reference {

// A microbatch (in a pipeline: one chunk of the model for it) between its forward and its backward.
struct InFlight {
  MicrobatchPlan plan;
  UnitProgress progress;
};

class CombinedStep {
 public:
  CombinedStep(Context& context, GatherPipeline& gathers, ReducePipeline& reductions,
               OperationRunner& runner);

  std::unique_ptr<InFlight> Start(int64_t step, int32_t microbatch, int32_t chunk,
                                  bool forward_only = false);
  // NULL: the step has no such side. Publishes LOSS of the microbatch that goes forward. transfer:
  // in a pipeline, called where values are sent on (kTransfer).
  void Run(InFlight* forward, InFlight* backward, const std::function<void()>& transfer = nullptr);

 private:
  void RunTurn(InFlight& microbatch, const Turn& turn);
  void RunOperations(InFlight& microbatch, const PlannedTurn& turn);

  Context& c_;
  OperationRunner& runner_;
  PartHooks hooks_;
  ScheduleSettings settings_;
};

}  // namespace reference
