#include "reference/schedule/combined_step.h"

namespace reference {

CombinedStep::CombinedStep(Context& context, GatherPipeline& gathers, ReducePipeline& reductions,
                           OperationRunner& runner)
    : c_(context), runner_(runner), hooks_(context, gathers, reductions) {
  settings_.delay_wgrad = c_.config.delay_wgrad;
  settings_.early_release = c_.config.early_attn_release;
  settings_.recomputed =
      PlanRecompute(c_.host.model(), false, c_.config.recompute_modules).on_demand;
}

std::unique_ptr<InFlight> CombinedStep::Start(int64_t step, int32_t microbatch, int32_t chunk,
                                              bool forward_only) {
  ScheduleSettings settings = settings_;
  settings.forward_only = forward_only;
  std::unique_ptr<InFlight> started(new InFlight{{c_, step, microbatch, chunk, settings}, {}});
  started->progress = hooks_.Start(started->plan);
  return started;
}

void CombinedStep::Run(InFlight* forward, InFlight* backward,
                       const std::function<void()>& transfer) {
  StepShape shape{std::nullopt, std::nullopt, settings_.delay_wgrad, settings_.early_release,
                  transfer != nullptr};
  if (forward != nullptr) shape.forward_layers = forward->plan.layers();
  if (backward != nullptr) shape.backward_layers = backward->plan.layers();
  for (const Turn& turn : CombinedStepOrder(shape)) {
    if (turn.action == Action::kTransfer) {
      transfer();
    } else {
      RunTurn(turn.side == Side::kForward ? *forward : *backward, turn);
    }
  }
}

void CombinedStep::RunTurn(InFlight& microbatch, const Turn& turn) {
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
void CombinedStep::RunOperations(InFlight& microbatch, const PlannedTurn& turn) {
  if (!turn.operations.empty()) {
    // Without overlap there is nothing to hide behind.
    const bool apart = turn.on_a2a() && c_.streams.a2a != nullptr;
    const spf_stream stream = apart ? c_.streams.a2a : c_.streams.compute;
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
