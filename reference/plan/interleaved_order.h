// interleaved_order.h: which microbatches and chunks meet in each step of a pipeline whose ranks
// hold several chunks of the model?
//
// Rank r of P holds chunks c = 0 .. C - 1; chunk c is stage c * P + r. Forward takes P microbatches
// through chunk 0, the same ones through chunk 1, and so on, then the next P; backward does the
// same from the last chunk on. The number of microbatches is a multiple of P: in a smaller last
// round a chunk's output would be needed before it was made. Every rank has the same order, shifted
// by its warm-up: steps with a forward side only, so that its first backward finds the gradient of
// the stage behind it.
//
// Where forward and backward of a step overlap, they must not belong to the same chunk of the same
// microbatch: the warm-up is one step longer (Megatron-LM, interleaved schedule). Pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace reference {

struct ChunkPass {
  int32_t microbatch = 0, chunk = 0;
  bool operator==(const ChunkPass&) const = default;
};

struct PipelineShape {
  int32_t ranks = 1, rank = 0, chunks = 1;
  int32_t microbatches = 1;  // a multiple of ranks
  bool overlap = false;      // forward and backward of a step are one combined step
};

// In the order in which they go forward; the same on every rank.
std::vector<ChunkPass> ForwardPasses(const PipelineShape& shape);
std::vector<ChunkPass> BackwardPasses(const PipelineShape& shape);
int32_t WarmupPasses(const PipelineShape& shape);

// One side only in warm-up and at the end. Without overlap forward runs before backward.
struct PipelineStep {
  std::optional<ChunkPass> forward, backward;
  bool operator==(const PipelineStep&) const = default;
};
std::vector<PipelineStep> PipelineSteps(const PipelineShape& shape);

// What crosses from one stage to the next (forward), or its gradient that comes back (backward).
// Ranks form a ring: the last one passes a chunk's output on to the first one's next chunk.
struct Message {
  bool backward = false, send = false;
  ChunkPass pass;    // of this rank: what produced it, or will use it
  int32_t peer = 0;  // rank in the pipeline
};
// After this step, before the next one (step = -1: before the first): what the step's passes have
// produced leaves, what the next step's need arrives, as one group operation (reference/README.md
// says why): ranks are one step apart, and both ends of a message stand in the same round.
std::vector<Message> MessagesAfter(const PipelineShape& shape,
                                   const std::vector<PipelineStep>& steps, int32_t step);

}  // namespace reference
