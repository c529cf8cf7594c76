// reshard_after_forward: traces of an engine that heeds it, and of one that was made for another
// value.
#include <gtest/gtest.h>

#include "conformance/checks/knobs/knobs.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

Case Asked(int32_t world, int32_t value, const char* script = "tet") {
  return MiniCase(world, [&](InstanceSpec& spec) {
    spec.reshard_after_forward = value;
    spec.microbatches = 2;
    spec.script = script;
  });
}

// The traces of an engine that does one thing where the case asks for another.
MiniRun DoesWhereAsked(int32_t does, int32_t asked) {
  MiniRun mini = RunMini(Asked(8, does));
  mini.spec->instances[0].reshard_after_forward = asked;
  Derive(*mini.spec);
  return mini;
}

TEST(Reshard, WhatIsKeptIsNotGatheredAgain) {
  const MiniRun mini = RunMini(Asked(4, 0));
  const CheckResult result = CheckKnobs(mini.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("KN-10"));
  EXPECT_FALSE(result.judged.contains("KN-11"));
}

TEST(Reshard, PartsAreGatheredOverTheRanksThatShareThemOut) {
  for (const int32_t n : {2, 4}) {
    const MiniRun mini = RunMini(Asked(8, n));
    const CheckResult result = CheckKnobs(mini.run);
    EXPECT_EQ(FoundIn(result), "") << n;
    EXPECT_TRUE(result.judged.contains("KN-11")) << n;
    EXPECT_FALSE(result.judged.contains("KN-10")) << n;
  }
}

// As FSDP2 does with experts, which are sharded apart from the unit that they are in.
TEST(Reshard, AUnitMayBeGatheredInPieces) {
  MiniFaults pieces;
  pieces.in_pieces = true;
  const CheckResult kept = CheckKnobs(RunMini(Asked(4, 0), pieces).run);
  EXPECT_EQ(FoundIn(kept), "");
  EXPECT_TRUE(kept.judged.contains("KN-10"));
  const CheckResult parts = CheckKnobs(RunMini(Asked(4, 2), pieces).run);
  EXPECT_EQ(FoundIn(parts), "");
  EXPECT_TRUE(parts.judged.contains("KN-11"));
}

TEST(Reshard, AnEngineThatReleasesWhatIsToStayIsFound) {
  EXPECT_EQ(FoundIn(CheckKnobs(DoesWhereAsked(1, 0).run)), "KN-10");
  EXPECT_EQ(FoundIn(CheckKnobs(DoesWhereAsked(2, 0).run)), "KN-10");
}

TEST(Reshard, BackwardOverAllRanksOrOverOtherRunsIsFound) {
  const CheckResult all = CheckKnobs(DoesWhereAsked(1, 2).run);
  EXPECT_EQ(FoundIn(all), "KN-11");
  EXPECT_EQ(all.findings.at(0).seen, "one over [0,1,2,3,4,5,6,7]");
  EXPECT_EQ(all.findings.at(0).expected, "a gather over the ranks [0,1]");
  EXPECT_EQ(FoundIn(CheckKnobs(DoesWhereAsked(4, 2).run)), "KN-11");
  EXPECT_EQ(FoundIn(CheckKnobs(DoesWhereAsked(2, 4).run)), "KN-11");
}

TEST(Reshard, WithoutContentsItIsNotJudged) {
  MiniRun mini = RunMini(Asked(4, 2));
  for (Trace& trace : mini.run.traces) trace.provides.work = false;
  const CheckResult result = CheckReshard(mini.run);
  EXPECT_FALSE(result.judged.contains("KN-11"));
  EXPECT_EQ(result.not_checkable.size(), 1u);
}

}  // namespace
}  // namespace shardproof
