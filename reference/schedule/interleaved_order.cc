#include "reference/schedule/interleaved_order.h"

#include <algorithm>

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
    if (k + warmup >= forward.size()) {
      steps.push_back({std::nullopt, backward[k]});
    } else if (shape.overlap) {
      steps.push_back({forward[k + warmup], backward[k]});
    } else {
      steps.push_back({forward[k + warmup], std::nullopt});
      steps.push_back({std::nullopt, backward[k]});
    }
  }
  return steps;
}

}  // namespace reference
