#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/checks/budgets/budgets.h"
#include "conformance/checks/budgets/padding.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/checks/testing/mini_layer_wise.h"

namespace shardproof {
namespace {

TEST(Wire, AGoodRunHasNoFinding) {
  for (const int32_t world : {2, 4, 8}) {
    const CheckResult result = CheckWire(
        RunMini(MiniCase(world, [](InstanceSpec& spec) { spec.model.odd_sizes = true; })).run);
    EXPECT_EQ(FoundIn(result), "") << world;
    EXPECT_TRUE(result.judged.contains("BU-04"));
    EXPECT_TRUE(result.judged.contains("BU-05"));
  }
}

TEST(Wire, ShardsThatAreTwiceAsLarge) {
  MiniFaults faults;
  faults.padded_shards = true;
  const CheckResult result = CheckWire(RunMini(MiniCase(2), faults).run);
  EXPECT_EQ(FoundIn(result), "BU-04");
}

// With unused parameters the zeros that stand for their gradients look like padding: gathers alone.
TEST(Wire, ZerosOfAnUnusedParameterAreNoPadding) {
  const auto unused = [](InstanceSpec& spec) { spec.model.unused = "step"; };
  EXPECT_EQ(FoundIn(CheckWire(RunMini(MiniCase(2, unused)).run)), "");
  MiniFaults faults;
  faults.padded_shards = true;
  EXPECT_EQ(FoundIn(CheckWire(RunMini(MiniCase(2, unused), faults).run)), "BU-04");
}

// After the first gather the second rank takes the first one's shard for its own, so that backward
// gathers that twice.
void TakeTheOthersShard(MiniRun& mini) {
  Trace& trace = mini.run.traces[1];
  const auto sends = [&](const Event& event) { return trace.ranges[event.ranges.begin]; };
  const auto gathers = [](const Event& event) { return event.collective == SPF_ALL_GATHER; };
  const auto gather =
      std::find_if(trace.events.begin(), trace.events.end(), [&](const Event& event) {
        return gathers(event) && sends(event).length > 1024 &&
               std::count_if(trace.events.begin(), trace.events.end(), [&](const Event& again) {
                 return gathers(again) && again.call == event.call &&
                        sends(again).alloc == sends(event).alloc;
               }) == 2;
      });
  ASSERT_NE(gather, trace.events.end());
  Event copy = *gather;
  copy.kind = EventKind::kCopy;
  copy.collective = 0;
  copy.group = -1;
  Range to = trace.ranges[gather->ranges.begin], from = trace.ranges[gather->ranges.begin + 1];
  from.length = to.length;
  from.access = kRead;
  to.access = kWrite;
  copy.ranges.begin = static_cast<uint32_t>(trace.ranges.size());
  trace.ranges.insert(trace.ranges.end(), {from, to});
  copy.ranges.end = static_cast<uint32_t>(trace.ranges.size());
  trace.events.insert(gather + 1, copy);
}

TEST(Wire, ElementsThatComeTwice) {
  MiniRun mini = RunMini(MiniCase(2));
  TakeTheOthersShard(mini);
  EXPECT_EQ(FoundIn(CheckWire(mini.run)), "BU-04");
}

// A gather may bring both copies, and no half twice.
TEST(Wire, ElementsThatComeTwiceAreNotTwoCopies) {
  MiniRun mini = RunMini(MiniCase(2));
  TakeTheOthersShard(mini);
  mini.spec->instances[0].backward_copies = true;
  EXPECT_EQ(FoundIn(CheckWire(mini.run)), "BU-04");
}

// Shards that were never installed are lost values, and no padding.
TEST(Wire, WhatIsMissingIsNoPadding) {
  MiniRun mini = RunMini(MiniCase(2));
  for (Trace& trace : mini.run.traces) {
    std::erase_if(trace.events, [](const Event& event) {
      return event.kind == EventKind::kInit && event.id % 2 == 0;
    });
  }
  EXPECT_EQ(FoundIn(CheckWire(mini.run)), "");
}

TEST(Wire, AllReducesWhereEachRankKeepsAShard) {
  MiniFaults faults;
  faults.all_reduce = true;
  EXPECT_EQ(FoundIn(CheckWire(RunMini(MiniCase(2), faults).run)), "BU-05");
  // DeepSpeed's stage 2 does that with buckets of several owners.
  const Case zero2 =
      MiniCase(2, [](InstanceSpec& spec) { spec.strategy = ShardingStrategy::kOptimGrads; });
  const CheckResult result = CheckWire(RunMini(zero2, faults).run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_FALSE(result.judged.contains("BU-05"));
}

// Replicas of a shard are all-reduced.
TEST(Wire, AnAllReduceAcrossInstancesIsRight) {
  const Case c = MiniCase(4, [](InstanceSpec& spec) { spec.outer = 2; });
  const CheckResult result = CheckWire(RunMini(c).run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("BU-05"));
}

TEST(Wire, LayerWiseEnginesHaveRulesOfTheirOwn) {
  EXPECT_TRUE(CheckWire(RunLayerWise(LayerWiseCase(2)).run).judged.empty());
}

TEST(Wire, WithoutMemoryNothingIsSaid) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.traces[1].provides.memory = false;
  const CheckResult result = CheckWire(mini.run);
  EXPECT_TRUE(result.judged.empty());
  EXPECT_EQ(NotCheckableIn(result), (std::set<std::string>{"BU-04", "BU-05"}));
}

// 10 rows of 4 floats on 4 ranks: 12 rows. One of 3 floats among buckets of 512 bytes.
TEST(Padding, IsWhatAPublishedLayoutAdds) {
  EXPECT_EQ(MostPadding({{64, 16, 4}}, 1, 4), 512 - 64) << "lcm(1, 128) elements";
  EXPECT_EQ(MostPadding({{8192, 16, 4}}, 2, 4), 0);
  EXPECT_EQ(MostPadding({{3 * 8192, 8192, 4}}, 2, 4), 8192) << "a row more";
  EXPECT_EQ(MostPadding({{3 * 8192, 16, 4}}, 2, 8192 * 4), 5 * 8192) << "shards of 2^13 elements";
  // The longest row that all rows divide: a bucket ends at a multiple for all ranks.
  EXPECT_EQ(MostPadding({{4800, 48, 4}, {4800, 32, 4}}, 8, 4), 9984 - 9600);
}

}  // namespace
}  // namespace shardproof
