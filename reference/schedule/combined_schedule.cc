#include "reference/schedule/combined_schedule.h"

namespace reference {

CombinedSchedule::CombinedSchedule(Context& context, GatherPipeline& gathers,
                                   ReducePipeline& reductions, OperationRunner& runner)
    : c_(context),
      links_(c_.groups.pp.size() > 1 ? std::make_unique<PipelineLinks>(context) : nullptr),
      step_(context, gathers, reductions, runner, links_.get()) {}

void CombinedSchedule::TrainMicrobatches(int64_t step) {
  if (links_) {
    Interleaved(step);
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

void CombinedSchedule::Interleaved(int64_t step) {
  const PipelineShape shape{c_.groups.pp.size(), c_.groups.pp.rank, c_.config.chunks,
                            c_.config.microbatches, c_.config.overlap_moe};
  std::map<std::pair<int32_t, int32_t>, std::unique_ptr<InFlight>> between;
  const auto key = [](const ChunkPass& pass) { return std::pair(pass.microbatch, pass.chunk); };
  for (const PipelineStep& now : PipelineSteps(shape)) {
    std::unique_ptr<InFlight> forward, backward;
    if (now.backward) {
      backward = std::move(between.at(key(*now.backward)));
      between.erase(key(*now.backward));
    }
    if (now.forward) forward = step_.Start(step, now.forward->microbatch, now.forward->chunk);
    step_.Run(forward.get(), backward.get());
    if (forward) between[key(*now.forward)] = std::move(forward);
  }
}

void CombinedSchedule::Destroy() {
  if (links_) links_->Destroy();
}

}  // namespace reference
