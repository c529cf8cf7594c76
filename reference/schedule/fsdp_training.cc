#include "reference/schedule/fsdp_training.h"

namespace reference {

FsdpTraining::FsdpTraining(Context& context, ParamStore& store, ReducePipeline& reductions)
    : c_(context),
      store_(store),
      gathers_(context),
      hooks_(context, store, gathers_, reductions),
      runner_(context, gathers_, reductions),
      driver_(context, hooks_, gathers_, runner_) {
  if (c_.config.overlap_moe || c_.groups.pp)
    schedule_ = std::make_unique<CombinedSchedule>(context, gathers_, reductions, runner_);
}

void FsdpTraining::InstallInitialWeights() {
  store_.Install();
  gathers_.Invalidate();
}

void FsdpTraining::BeginStep() {
  hooks_.ZeroGrad();
  hooks_.StartParamSync();
}

void FsdpTraining::TrainMicrobatches(int64_t step) {
  if (schedule_) {
    schedule_->TrainMicrobatches(step);
  } else {
    for (int32_t m = 0; m < c_.config.microbatches; ++m) driver_.TrainMicrobatch(step, m);
  }
}

void FsdpTraining::EvalMicrobatches(int64_t step) {
  hooks_.StartParamSync();
  if (c_.groups.pp) {
    schedule_->EvalMicrobatches(step);
  } else {
    for (int32_t m = 0; m < c_.config.microbatches; ++m) driver_.EvalMicrobatch(step, m);
  }
  gathers_.Reset();
}

void FsdpTraining::Destroy() {
  gathers_.Destroy();
  if (schedule_) schedule_->Destroy();
}

}  // namespace reference
