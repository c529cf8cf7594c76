// combined_schedule.h: how does a train step of several microbatches run?
//
// Without a pipeline: microbatch k goes forward while microbatch k - 1 goes backward, one combined
// step after the other. With one: chunks of microbatches meet as interleaved_order.h says. Eval is
// sequential (fsdp/driver.h), in a pipeline forward only.
#pragma once
#include <map>

#include "reference/schedule/combined_step.h"
#include "reference/schedule/pipeline_links.h"

namespace reference {

class CombinedSchedule {
 public:
  CombinedSchedule(Context& context, GatherPipeline& gathers, ReducePipeline& reductions,
                   OperationRunner& runner);

  // Forward and backward of all microbatches; publishes LOSS of each.
  void TrainMicrobatches(int64_t step);
  // In a pipeline only. Publishes LOSS of each.
  void EvalMicrobatches(int64_t step);
  void Destroy();

 private:
  void WithoutPipeline(int64_t step);
  void Interleaved(int64_t step, const PipelineShape& shape, const std::vector<PipelineStep>& steps,
                   bool forward_only);
  PipelineShape Shape() const;

  Context& c_;
  std::unique_ptr<PipelineLinks> links_;  // in a pipeline
  CombinedStep step_;
};

}  // namespace reference
