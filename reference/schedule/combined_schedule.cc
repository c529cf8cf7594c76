#include "reference/schedule/combined_schedule.h"

namespace reference {

CombinedSchedule::CombinedSchedule(Context& context, GatherPipeline& gathers,
                                   ReducePipeline& reductions, OperationRunner& runner)
    : c_(context),
      links_(c_.groups.pp.size() > 1 ? std::make_unique<PipelineLinks>(context) : nullptr),
      step_(context, gathers, reductions, runner) {}

void CombinedSchedule::TrainMicrobatches(int64_t step) {
  if (links_) {
    Interleaved(step, Shape(), PipelineSteps(Shape()), false);
  } else {
    WithoutPipeline(step);
  }
}

// Never more than two microbatches at once.
void CombinedSchedule::WithoutPipeline(int64_t step) {
  std::unique_ptr<InFlight> forward, backward;
  for (const StepSides& sides : StepsWithoutPipelining(c_.config.microbatches)) {
    backward = std::move(forward);  // what went forward in the last step
    if (sides.forward) forward = step_.Start(step, *sides.forward, 0);
    step_.Run(forward.get(), backward.get());
  }
}

void CombinedSchedule::EvalMicrobatches(int64_t step) {
  std::vector<PipelineStep> steps;
  for (const ChunkPass& pass : ForwardPasses(Shape())) steps.push_back({pass, std::nullopt});
  Interleaved(step, Shape(), steps, true);
}

PipelineShape CombinedSchedule::Shape() const {
  return {c_.groups.pp.size(), c_.groups.pp.rank, c_.config.chunks, c_.config.microbatches,
          c_.config.overlap_moe};
}

void CombinedSchedule::Interleaved(int64_t step, const PipelineShape& shape,
                                   const std::vector<PipelineStep>& steps, bool forward_only) {
  std::map<std::pair<int32_t, int32_t>, std::unique_ptr<InFlight>> passes;
  const auto at = [&](const ChunkPass& pass) -> std::unique_ptr<InFlight>& {
    return passes[{pass.microbatch, pass.chunk}];
  };
  const auto transfer_after = [&](int32_t s) {
    if (const auto next = static_cast<size_t>(s) + 1; next < steps.size() && steps[next].forward) {
      const ChunkPass& pass = *steps[next].forward;
      at(pass) =
          step_.Start(step, pass.microbatch, pass.chunk, forward_only);  // what arrives has a place
    }
    links_->Transfer(MessagesAfter(shape, steps, s),
                     [&](const ChunkPass& pass) -> MicrobatchPlan& { return at(pass)->plan; });
  };
  transfer_after(-1);
  for (int32_t s = 0; s < static_cast<int32_t>(steps.size()); ++s) {
    const auto& [f, b] = steps[static_cast<size_t>(s)];
    InFlight* forward = f ? at(*f).get() : nullptr;
    InFlight* backward = b ? at(*b).get() : nullptr;
    links_->Arrive();
    if (f && b && !shape.overlap) {
      step_.Run(forward, nullptr);
      forward = nullptr;
    }
    step_.Run(forward, backward, [&] { transfer_after(s); });
    if (b) at(*b).reset();
    if (f && forward_only) at(*f).reset();
  }
}

void CombinedSchedule::Destroy() {
  if (links_) links_->Destroy();
}

}  // namespace reference
