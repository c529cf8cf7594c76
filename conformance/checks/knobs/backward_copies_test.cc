// backward_param_copies: traces of an engine that keeps two copies of units, of one that has one,
// and of one whose copy for backward is old.
#include <gtest/gtest.h>

#include "conformance/checks/knobs/knobs.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

Case Asked(const char* script = "tet") {
  return MiniCase(2, [&](InstanceSpec& spec) {
    spec.backward_copies = true;
    spec.script = script;
  });
}

TEST(BackwardCopies, EachSideReadsItsOwn) {
  const CheckResult result = CheckBackwardCopies(RunMini(Asked()).run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_EQ(result.judged, (std::set<std::string>{"KN-15", "KN-16"}));
}

TEST(BackwardCopies, OneShardForBothIsFound) {
  MiniFaults one;
  one.one_copy = true;
  one.rank = 1;
  const CheckResult result = CheckBackwardCopies(RunMini(Asked("t"), one).run);
  EXPECT_EQ(FoundIn(result), "KN-15");
  EXPECT_EQ(result.findings.at(0).rank, 1);
}

// As FSDP2 does; what is sent is a buffer of its own each time, and one shard all the same.
TEST(BackwardCopies, OneShardThatIsCopiedBeforeEachGatherIsFound) {
  MiniFaults one;
  one.staged = true;
  CheckResult result = CheckBackwardCopies(RunMini(Asked("t"), one).run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_EQ(result.judged.count("KN-15"), 1u);
  one.one_copy = true;
  result = CheckBackwardCopies(RunMini(Asked("t"), one).run);
  EXPECT_EQ(FoundIn(result), "KN-15");
}

TEST(BackwardCopies, AnEvaluationMayReadEither) {
  MiniFaults other;
  other.eval_copy = true;
  const CheckResult result = CheckBackwardCopies(RunMini(Asked("tet"), other).run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_EQ(result.judged.count("KN-15"), 1u);
}

// What forward gathered is still there, and backward reads it.
TEST(BackwardCopies, ForwardsGatherReadInBackwardIsFound) {
  MiniFaults kept;
  kept.no_release_forward = true;
  const CheckResult result = CheckBackwardCopies(RunMini(Asked("t"), kept).run);
  EXPECT_EQ(FoundIn(result), "KN-15");
  EXPECT_NE(result.findings.at(0).message.find("backward reads forward's copy"), std::string::npos);
}

TEST(BackwardCopies, ACopyOfOlderWeightsIsFound) {
  MiniFaults stale;
  stale.stale_copy = true;
  stale.rank = 0;
  const CheckResult result = CheckBackwardCopies(RunMini(Asked(), stale).run);
  EXPECT_EQ(FoundIn(result), "KN-16");
  EXPECT_NE(result.findings.at(0).message.find("for backward is of older weights"),
            std::string::npos);
}

// One rank never writes its shard of the copy: what the other gathers is not all of it.
TEST(BackwardCopies, ACopyThatIsNotWholeIsFound) {
  MiniFaults blank;
  blank.blank_copy = true;
  blank.rank = 1;
  const CheckResult result = CheckBackwardCopies(RunMini(Asked("t"), blank).run);
  EXPECT_EQ(FoundIn(result), "KN-16");
  EXPECT_NE(result.findings.at(0).message.find("does not have all"), std::string::npos);
}

TEST(BackwardCopies, AnotherStrategyAndAnEvaluationShowNothing) {
  MiniRun mini = RunMini(Asked("e"));
  EXPECT_TRUE(CheckBackwardCopies(mini.run).judged.empty());
  mini = RunMini(Asked("t"));
  mini.spec->instances[0].backward_copies = false;
  EXPECT_TRUE(CheckBackwardCopies(mini.run).judged.empty());
}

TEST(BackwardCopies, WithoutContentsItIsNotJudged) {
  MiniRun mini = RunMini(Asked());
  for (Trace& trace : mini.run.traces) trace.provides.work = 0;
  const CheckResult result = CheckBackwardCopies(mini.run);
  EXPECT_TRUE(result.judged.empty() && result.findings.empty());
  EXPECT_EQ(result.not_checkable.size(), 2u);
}

}  // namespace
}  // namespace shardproof
