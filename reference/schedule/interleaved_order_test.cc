#include "reference/schedule/interleaved_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace reference {
namespace {

std::string Text(const std::vector<PipelineStep>& steps) {
  std::string text;
  const auto add = [&](const char* side, const std::optional<ChunkPass>& pass) {
    if (pass) text += side + std::to_string(pass->microbatch) + std::to_string(pass->chunk);
  };
  for (const PipelineStep& step : steps) {
    text += text.empty() ? "" : " ";
    add("f", step.forward);
    add("b", step.backward);
  }
  return text;
}

// Letters: side, microbatch, chunk. By hand: 2 ranks, 2 chunks, 2 microbatches.
TEST(InterleavedOrder, ByHand) {
  EXPECT_EQ(Text(PipelineSteps({2, 1, 2, 2, false})), "f00 f10 f01 b01 f11 b11 b00 b10");
  EXPECT_EQ(Text(PipelineSteps({2, 1, 2, 2, true})), "f00 f10 f01 f11b01 b11 b00 b10");
  EXPECT_EQ(Text(PipelineSteps({2, 0, 2, 2, true})), "f00 f10 f01 f11 b01 b11 b00 b10");
}

TEST(InterleavedOrder, WarmupHasOneMoreWithOverlap) {
  EXPECT_EQ(WarmupPasses({4, 0, 2, 8, false}), 10);
  EXPECT_EQ(WarmupPasses({4, 0, 2, 8, true}), 11);
  EXPECT_EQ(WarmupPasses({4, 3, 2, 8, true}), 5);
  EXPECT_EQ(WarmupPasses({2, 0, 2, 2, true}), 4) << "not more than there are";
}

// Runs all ranks' steps with messages between stages; a step waits for what it receives. Returns
// whether all finish.
bool Finishes(PipelineShape shape) {
  std::set<std::pair<int32_t, int32_t>> forward_done, backward_done;  // (stage, microbatch)
  std::vector<std::vector<PipelineStep>> steps;
  std::vector<size_t> next(static_cast<size_t>(shape.ranks));
  for (shape.rank = 0; shape.rank < shape.ranks; ++shape.rank)
    steps.push_back(PipelineSteps(shape));
  const int32_t stages = shape.ranks * shape.chunks;
  for (bool moved = true; moved;) {
    moved = false;
    for (int32_t r = 0; r < shape.ranks; ++r) {
      size_t& at = next[static_cast<size_t>(r)];
      if (at == steps[static_cast<size_t>(r)].size()) continue;
      const PipelineStep& step = steps[static_cast<size_t>(r)][at];
      const auto stage = [&](const ChunkPass& pass) { return pass.chunk * shape.ranks + r; };
      if (step.forward && stage(*step.forward) > 0 &&
          !forward_done.contains({stage(*step.forward) - 1, step.forward->microbatch}))
        continue;
      if (step.backward) {
        const int32_t s = stage(*step.backward), m = step.backward->microbatch;
        if (!forward_done.contains({s, m})) continue;
        if (s + 1 < stages && !backward_done.contains({s + 1, m})) continue;
      }
      if (step.forward) forward_done.insert({stage(*step.forward), step.forward->microbatch});
      if (step.backward) backward_done.insert({stage(*step.backward), step.backward->microbatch});
      ++at;
      moved = true;
    }
  }
  return backward_done.size() == static_cast<size_t>(stages * shape.microbatches);
}

TEST(InterleavedOrder, EveryPassOnceAndNobodyWaitsInACircle) {
  for (int32_t ranks : {2, 3, 4}) {
    for (int32_t chunks : {2, 3}) {
      for (int32_t groups : {1, 2, 3}) {
        for (bool overlap : {false, true}) {
          const PipelineShape shape{ranks, 0, chunks, groups * ranks, overlap};
          EXPECT_TRUE(Finishes(shape)) << ranks << " " << chunks << " " << groups << overlap;
        }
      }
    }
  }
}

TEST(InterleavedOrder, NoStepMeetsItself) {
  for (int32_t ranks : {2, 4}) {
    for (int32_t rank = 0; rank < ranks; ++rank) {
      for (const PipelineStep& step : PipelineSteps({ranks, rank, 2, 2 * ranks, true})) {
        if (step.forward && step.backward) {
          EXPECT_FALSE(*step.forward == *step.backward);
        }
      }
    }
  }
}

}  // namespace
}  // namespace reference
