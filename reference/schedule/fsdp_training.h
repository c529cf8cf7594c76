// fsdp_training.h: how do parameters and gradients of units come and go in a step?
#pragma once
#include <memory>

#include "reference/fsdp/driver.h"
#include "reference/fsdp/training.h"
#include "reference/schedule/combined_schedule.h"

namespace reference {

// Strategies no_shard to optim_grads_params: hooks around units, one microbatch after the other, or
// under the schedule that runs two at a time.
class FsdpTraining : public Training {
 public:
  FsdpTraining(Context& context, ParamStore& store, ReducePipeline& reductions);

  void InstallInitialWeights() override;
  void BeginStep() override;
  void TrainMicrobatches(int64_t step) override;
  void FinishGradSync() override { hooks_.FinishGradSync(); }
  void InstallWeights() override { hooks_.InstallWeights(); }
  void EvalMicrobatches(int64_t step) override;
  void Destroy() override;

 private:
  Context& c_;
  ParamStore& store_;
  GatherPipeline gathers_;
  Hooks hooks_;
  OperationRunner runner_;
  Driver driver_;
  std::unique_ptr<CombinedSchedule> schedule_;  // with overlap_moe, and in pipelines
};

}  // namespace reference
