#include "reference/plan/interleaved_order.h"

#include <algorithm>

#include "reference/core/at.h"

namespace reference {

std::vector<ChunkPass> ForwardPasses(const PipelineShape& shape) {
  std::vector<ChunkPass> passes;
  for (int32_t first = 0; first < shape.microbatches; first += shape.ranks) {
    const int32_t end = std::min(first + shape.ranks, shape.microbatches);
    for (int32_t chunk = 0; chunk < shape.chunks; ++chunk) {
      for (int32_t m = first; m < end; ++m) passes.push_back({m, chunk});
    }
  }
  return passes;
}

std::vector<ChunkPass> BackwardPasses(const PipelineShape& shape) {
  std::vector<ChunkPass> passes = ForwardPasses(shape);
  for (ChunkPass& pass : passes) pass.chunk = shape.chunks - 1 - pass.chunk;
  return passes;
}

int32_t WarmupPasses(const PipelineShape& shape) {
  const int32_t until_first_gradient =
      2 * (shape.ranks - shape.rank - 1) + (shape.chunks - 1) * shape.ranks;
  return std::min(shape.microbatches * shape.chunks,
                  until_first_gradient + (shape.overlap ? 1 : 0));
}

std::vector<PipelineStep> PipelineSteps(const PipelineShape& shape) {
  const std::vector<ChunkPass> forward = ForwardPasses(shape), backward = BackwardPasses(shape);
  const auto warmup = static_cast<size_t>(WarmupPasses(shape));
  std::vector<PipelineStep> steps;
  for (size_t k = 0; k < warmup; ++k) steps.push_back({forward[k], std::nullopt});
  for (size_t k = 0; k < backward.size(); ++k) {
    steps.push_back({std::nullopt, backward[k]});
    if (k + warmup < forward.size()) steps.back().forward = forward[k + warmup];
  }
  return steps;
}

std::vector<Message> MessagesAfter(const PipelineShape& shape,
                                   const std::vector<PipelineStep>& steps, int32_t step) {
  const int32_t next = (shape.rank + 1) % shape.ranks;
  const int32_t previous = (shape.rank + shape.ranks - 1) % shape.ranks;
  const auto first_stage = [&](const ChunkPass& p) { return p.chunk == 0 && shape.rank == 0; };
  const auto last_stage = [&](const ChunkPass& p) {
    return p.chunk == shape.chunks - 1 && shape.rank == shape.ranks - 1;
  };
  std::vector<Message> messages;
  if (step >= 0) {
    const auto& [f, b] = At(steps, step);
    if (f && !last_stage(*f)) messages.push_back({false, true, *f, next});
    if (b && !first_stage(*b)) messages.push_back({true, true, *b, previous});
  }
  if (step + 1 < Length(steps)) {
    const auto& [f, b] = At(steps, step + 1);
    if (f && !first_stage(*f)) messages.push_back({false, false, *f, previous});
    if (b && !last_stage(*b)) messages.push_back({true, false, *b, next});
  }
  return messages;
}

}  // namespace reference
