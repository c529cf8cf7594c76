// fsdp_double_buffer: traces of an engine that keeps two buffers, and of one with more, or with
// memory for each unit.
#include <gtest/gtest.h>

#include "conformance/checks/knobs/knobs.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

Case Asked(const char* script = "tet") {
  return MiniCase(2, [&](InstanceSpec& spec) {
    spec.double_buffer = true;
    spec.model.layers = 4;
    spec.script = script;
  });
}

// The traces of an engine that allocates and frees with each unit.
MiniRun OwnMemory(const char* script = "tet", int32_t layers = 4) {
  Case c = Asked(script);
  c.instances[0].double_buffer = false;
  c.instances[0].model.layers = layers;
  Derive(c);
  MiniRun mini = RunMini(c);
  mini.spec->instances[0].double_buffer = true;
  return mini;
}

// The bias of the experts' scores is frozen anyway: a layer that trains has two dense buckets, one
// that is frozen as a whole has one.
TEST(DoubleBuffers, UnitsFrozenInPartAreNotLikeThoseFrozenAsAWhole) {
  for (const auto& [id, units] : {std::pair{"w2.zero3.moe4.sigmoid.doublebuffer", 2u},
                                  {"w2.zero3.moe4.sigmoid.frozen=last.doublebuffer", 1u},
                                  {"w2.zero3.moe4.frozen=last.doublebuffer", 2u}}) {
    const Case c = ParseId(id);
    EXPECT_EQ(InstanceFacts(c.instances.front(), c.world).UnitsAlike(0).size(), units) << id;
  }
}

TEST(DoubleBuffers, TwoThatUnitsTakeInTurn) {
  for (const int32_t buffers : {1, 2}) {
    MiniFaults two;
    two.buffers = buffers;
    const MiniRun mini = RunMini(Asked(), two);
    const CheckResult result = CheckDoubleBuffers(mini.run);
    EXPECT_EQ(FoundIn(result), "");
    EXPECT_EQ(result.judged, (std::set<std::string>{"KN-12", "KN-13"}));
  }
}

TEST(DoubleBuffers, AUnitIsGatheredAheadIntoTheOther) {
  MiniFaults ahead;
  ahead.prefetch = 1;
  EXPECT_EQ(FoundIn(CheckDoubleBuffers(RunMini(Asked(), ahead).run)), "");
}

TEST(DoubleBuffers, AThirdIsFound) {
  MiniFaults three;
  three.buffers = 3;
  three.rank = 1;
  const CheckResult result = CheckDoubleBuffers(RunMini(Asked(), three).run);
  EXPECT_EQ(FoundIn(result), "KN-12 KN-13");
  EXPECT_EQ(result.findings.at(0).rank, 1);
}

TEST(DoubleBuffers, MemoryOfEachUnitIsFound) {
  EXPECT_EQ(FoundIn(CheckDoubleBuffers(OwnMemory().run)), "KN-12 KN-13");
}

// Two units' worth, but given back in the step.
TEST(DoubleBuffers, WhatIsFreedBeforeDestroyIsFound) {
  const CheckResult result = CheckDoubleBuffers(OwnMemory("t", 1).run);
  EXPECT_EQ(FoundIn(result), "KN-12 KN-13");
  EXPECT_EQ(result.findings.at(0).seen, "freed in train_step 0");
}

TEST(DoubleBuffers, WhereParametersAreWholeOnlyGradientsAreJudged) {
  MiniRun mini = RunMini(Asked());
  mini.spec->instances[0].strategy = ShardingStrategy::kOptimGrads;
  const CheckResult result = CheckDoubleBuffers(mini.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_EQ(result.judged, (std::set<std::string>{"KN-13"}));
}

TEST(DoubleBuffers, WhereNothingIsGivenBackItMeansNothing) {
  for (const auto strategy : {ShardingStrategy::kOptim, ShardingStrategy::kNoShard}) {
    MiniRun mini = OwnMemory();
    mini.spec->instances[0].strategy = strategy;
    EXPECT_TRUE(CheckDoubleBuffers(mini.run).judged.empty());
  }
}

TEST(DoubleBuffers, WithoutContentsOrMemoryItIsNotJudged) {
  for (const bool memory : {false, true}) {
    MiniRun mini = OwnMemory();
    for (Trace& trace : mini.run.traces) (memory ? trace.provides.memory : trace.provides.work) = 0;
    const CheckResult result = CheckDoubleBuffers(mini.run);
    EXPECT_TRUE(result.judged.empty() && result.findings.empty());
    EXPECT_EQ(result.not_checkable.size(), 2u);
  }
}

}  // namespace
}  // namespace shardproof
