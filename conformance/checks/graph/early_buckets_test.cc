#include "conformance/checks/graph/early_buckets.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "conformance/trace/trace_builder.h"

namespace shardproof::graph {
namespace {

// Backward of nodes, in this order; each writes one of two blocks. Nodes 0 to 9 are layer 0,
// 10 to 19 layer 1, and so on.
bool Early(const std::vector<std::pair<int, int>>& node_and_block, int phase = SPF_BWD) {
  TraceBuilder t(0, 2);
  const int group = t.Group("dp_cp", {0, 1});
  t.CallBegin("train_step", 0);
  const int stream = t.Stream("compute");
  const int blocks[] = {t.Alloc(stream, 64), t.Alloc(stream, 64)};
  for (const auto& [node, block] : node_and_block) {
    t.Compute(stream, node, phase, 0, {Updates(blocks[block], 0, 32)});
  }
  for (const int block : blocks)
    t.Collective(SPF_REDUCE_SCATTER, group, stream, 8, {Updates(block, 0, 64)});
  t.CallEnd("train_step", 0);
  const Trace trace = t.Done();
  return SomeBucketIsEarly(trace, 0, {{trace.events.back().call, {blocks[0], blocks[1]}}},
                           [](int32_t node) { return std::to_string(node / 10); });
}

TEST(EarlyBucketsTest, ABucketOfTheLastLayerIsEarly) { EXPECT_TRUE(Early({{11, 0}, {1, 1}})); }

TEST(EarlyBucketsTest, BucketsThatTheFirstLayerFillsAreNot) {
  EXPECT_FALSE(Early({{11, 0}, {12, 1}, {1, 0}, {2, 1}}));
}

TEST(EarlyBucketsTest, WhatIsLeftOfTheSameLayerIsNothingToHideUnder) {
  EXPECT_FALSE(Early({{12, 0}, {11, 1}}));
}

TEST(EarlyBucketsTest, ABlockThatNoComputeFillsShowsNothingAgainstIt) {
  EXPECT_TRUE(Early({{12, 0}, {11, 0}}));
  EXPECT_TRUE(Early({{12, 0}, {11, 1}}, SPF_FWD));
}

}  // namespace
}  // namespace shardproof::graph
