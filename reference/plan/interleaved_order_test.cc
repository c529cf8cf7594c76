#include "reference/plan/interleaved_order.h"

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
  EXPECT_EQ(Text(PipelineSteps({2, 1, 2, 2, false})), "f00 f10 f01b01 f11b11 b00 b10");
  EXPECT_EQ(Text(PipelineSteps({2, 1, 2, 2, true})), "f00 f10 f01 f11b01 b11 b00 b10");
  EXPECT_EQ(Text(PipelineSteps({2, 0, 2, 2, true})), "f00 f10 f01 f11 b01 b11 b00 b10");
}

TEST(InterleavedOrder, WarmupHasOneMoreWithOverlap) {
  EXPECT_EQ(WarmupPasses({4, 0, 2, 8, false}), 10);
  EXPECT_EQ(WarmupPasses({4, 0, 2, 8, true}), 11);
  EXPECT_EQ(WarmupPasses({4, 3, 2, 8, true}), 5);
  EXPECT_EQ(WarmupPasses({2, 0, 2, 2, true}), 4) << "not more than there are";
}

// A message as both ends must see it: direction, microbatch, and the stage that sends it.
struct Wire {
  bool backward;
  int32_t microbatch, from_stage;
  bool operator==(const Wire&) const = default;
};

// Runs the rounds of all ranks: messages between two ranks match in order, a round is done when all
// of its messages are, and the next one begins after it. Nothing else runs at the same time, as in
// one hardware queue. Returns whether all finish and both ends of every message agree.
bool Finishes(PipelineShape shape) {
  const auto ranks = static_cast<size_t>(shape.ranks);
  std::vector<std::vector<PipelineStep>> steps;
  for (shape.rank = 0; shape.rank < shape.ranks; ++shape.rank)
    steps.push_back(PipelineSteps(shape));
  std::map<std::pair<int32_t, int32_t>, std::vector<Wire>> sent, received;  // (from, to): begun
  const auto begin = [&](int32_t r, int32_t round) {
    shape.rank = r;
    for (const Message& m : MessagesAfter(shape, steps[static_cast<size_t>(r)], round)) {
      const int32_t mine = m.pass.chunk * shape.ranks + r;
      const int32_t from = m.send ? mine : (m.backward ? mine + 1 : mine - 1);
      (m.send ? sent[{r, m.peer}] : received[{m.peer, r}])
          .push_back({m.backward, m.pass.microbatch, from});
    }
  };
  const auto done = [&](int32_t r) {  // all that r has begun has been begun by the others
    for (int32_t o = 0; o < shape.ranks; ++o) {
      if (sent[{r, o}].size() > received[{r, o}].size()) return false;
      if (received[{o, r}].size() > sent[{o, r}].size()) return false;
    }
    return true;
  };
  std::vector<int32_t> round(ranks, -1);
  for (int32_t r = 0; r < shape.ranks; ++r) begin(r, -1);
  for (bool moved = true; moved;) {
    moved = false;
    for (int32_t r = 0; r < shape.ranks; ++r) {
      int32_t& at = round[static_cast<size_t>(r)];
      if (at == static_cast<int32_t>(steps[static_cast<size_t>(r)].size()) - 1 || !done(r))
        continue;
      begin(r, ++at);
      moved = true;
    }
  }
  for (int32_t r = 0; r < shape.ranks; ++r) {
    const auto last = static_cast<int32_t>(steps[static_cast<size_t>(r)].size()) - 1;
    if (round[static_cast<size_t>(r)] != last || !done(r)) return false;
  }
  return sent == received;
}

TEST(InterleavedOrder, NobodyWaitsInACircle) {
  for (int32_t ranks : {2, 3, 4}) {
    for (int32_t chunks : {1, 2, 3}) {
      for (int32_t groups : {1, 2, 3}) {
        for (bool overlap : {false, true}) {
          const PipelineShape shape{ranks, 0, chunks, groups * ranks, overlap};
          EXPECT_TRUE(Finishes(shape))
              << ranks << " ranks, " << chunks << " chunks, " << groups << " " << overlap;
        }
      }
    }
  }
}

TEST(InterleavedOrder, EveryPassOnceEachWayAndForwardFirst) {
  for (int32_t rank : {0, 1, 2}) {
    std::map<std::pair<int32_t, int32_t>, int> passes;
    for (const PipelineStep& step : PipelineSteps({3, rank, 2, 6, true})) {
      if (step.backward) {
        EXPECT_EQ((passes[{step.backward->microbatch, step.backward->chunk}]++), 1);
      }
      if (step.forward) {
        EXPECT_EQ((passes[{step.forward->microbatch, step.forward->chunk}]++), 0);
      }
    }
    EXPECT_EQ(passes.size(), 12U);
    for (const auto& [pass, times] : passes) EXPECT_EQ(times, 2);
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
