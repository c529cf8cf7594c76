#include "reference/schedule/combined_schedule.h"

namespace reference {

CombinedSchedule::CombinedSchedule(Context& context, GatherPipeline& gathers,
                                   ReducePipeline& reductions, OperationRunner& runner)
    : c_(context), runner_(runner), hooks_(context, gathers, reductions) {
  settings_.delay_wgrad = c_.config.delay_wgrad;
  settings_.early_release = c_.config.early_attn_release;
  settings_.recomputed =
      PlanRecompute(c_.host.model(), false, c_.config.recompute_modules).on_demand;
}

void CombinedSchedule::TrainMicrobatches(int64_t step) {
  for (const StepSides& sides : StepsWithoutPipelining(c_.config.microbatches))
    RunStep(step, sides);
}

void CombinedSchedule::RunStep(int64_t step, const StepSides& sides) {
  backward_ = std::move(forward_);  // what went forward in the last step
  StepShape shape{std::nullopt, std::nullopt, settings_.delay_wgrad, settings_.early_release};
  if (backward_) shape.backward_layers = backward_->plan.layers();
  if (sides.forward) {
    forward_.reset(new InFlight{{c_, step, *sides.forward, settings_}, {}});
    forward_->progress = hooks_.Start(forward_->plan);
    shape.forward_layers = forward_->plan.layers();
  }
  for (const Turn& turn : CombinedStepOrder(shape))
    RunTurn(turn.side == Side::kForward ? *forward_ : *backward_, turn);
  backward_.reset();
}

void CombinedSchedule::RunTurn(InFlight& microbatch, const Turn& turn) {
  const PlannedTurn& planned = microbatch.plan.Take(turn);
  switch (turn.action) {
    case Action::kRootPreBackward:
      return hooks_.RootPreBackward(microbatch.plan, microbatch.progress);
    case Action::kRootPostBackward:
      return hooks_.RootPostBackward(microbatch.plan, microbatch.progress);
    case Action::kJoinStart:
      if (turn.side == Side::kForward) hooks_.RootForward(microbatch.plan);
      return microbatch.plan.RecordOn(c_.streams.compute);
    case Action::kJoinEnd:
      return microbatch.plan.WaitOn(c_.streams.compute);
    default:
      return RunOperations(microbatch, planned);
  }
}

// One part: waits for the part before, and lets the next one wait for it.
void CombinedSchedule::RunOperations(InFlight& microbatch, const PlannedTurn& turn) {
  if (!turn.operations.empty()) {
    const spf_stream stream = turn.on_a2a() ? c_.streams.a2a : c_.streams.compute;
    if (turn.chained()) microbatch.plan.WaitOn(stream);
    for (size_t i = 0; i < turn.operations.size(); ++i) {
      const Operation& operation = turn.operations[i];
      hooks_.BeforeOperation(microbatch.plan, microbatch.progress, turn, operation);
      runner_.Run(operation, microbatch.plan.microbatch(), microbatch.plan.activations(), stream);
      microbatch.plan.FreeAfter(i, stream);
    }
    if (turn.chained()) microbatch.plan.RecordOn(stream);
  }
  hooks_.AfterTurn(microbatch.plan, microbatch.progress, turn);
}

}  // namespace reference
