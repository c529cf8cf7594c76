// Traces of a small engine whose ranks of cp have parts of one sequence, good and with one
// departure each.
#include <gtest/gtest.h>

#include "conformance/checks/tensor_parallel/tensor_parallel.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

Case Context(int32_t microbatches = 1) {
  return MiniCase(4, [&](InstanceSpec& spec) {
    spec.cp = 2;
    spec.context_parallel = true;
    spec.microbatches = microbatches;
    spec.model.layers = 2;
    spec.script = "te";
  });
}

CheckResult With(const MiniFaults& faults) {
  return CheckTensorParallel(RunMini(Context(), faults).run);
}

TEST(ContextParallel, WhatMeetsInItsPlaceIsGood) {
  const CheckResult result = CheckTensorParallel(RunMini(Context(2)).run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_EQ(NotCheckableIn(result).size(), 0u);
  const std::set<std::string> all{"CP-01", "CP-02", "CP-03"};
  EXPECT_EQ(result.judged, all);
}

TEST(ContextParallel, OfSamplesThatAreWholeNothingIsAsked) {
  Case c = Context();
  c.instances[0].context_parallel = false;
  Derive(c);
  const CheckResult result = CheckTensorParallel(RunMini(c).run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.empty());
}

TEST(ContextParallel, KeysOfTheRankAloneAreFound) {
  MiniFaults faults;
  faults.tp_gathers = 0;
  faults.rank = 2;
  const CheckResult result = With(faults);
  EXPECT_EQ(FoundIn(result), "CP-01");
  EXPECT_EQ(result.findings.at(0).rank, 2);
  EXPECT_EQ(result.findings.at(0).seen, "the part of this rank");
}

// From the second call on the buffers hold what the first one has gathered. (Backward of this
// engine writes over them.)
TEST(ContextParallel, KeysThatAnEarlierCallHasLeftAreFound) {
  Case c = Context();
  c.instances[0].script = "ee";
  Derive(c);
  MiniFaults faults;
  EXPECT_EQ(FoundIn(CheckTensorParallel(RunMini(c, faults).run)), "");
  faults.tp_stale = true;
  const CheckResult result = CheckTensorParallel(RunMini(c, faults).run);
  EXPECT_EQ(FoundIn(result), "CP-01");
  EXPECT_EQ(result.findings.at(0).seen, "what another microbatch or step has left there");
}

TEST(ContextParallel, GradientsThatAreNotSummedOnceAreFound) {
  for (const int32_t sums : {0, 2}) {
    MiniFaults faults;
    faults.tp_sums_backward = sums;
    EXPECT_EQ(FoundIn(With(faults)), "CP-02") << sums;
  }
  MiniFaults average;
  average.tp_average = true;
  EXPECT_EQ(FoundIn(With(average)), "CP-02");
}

// Legal all the same: gathered again, summed in whole and cut, gathered with counts.
TEST(ContextParallel, OtherWaysToMeetAreGood) {
  MiniFaults again, whole, uneven;
  again.tp_gathers = 2;
  whole.tp_whole_sums = true;
  uneven.tp_gathers_uneven = true;
  for (const MiniFaults& way : {again, whole, uneven}) {
    const CheckResult result = CheckTensorParallel(RunMini(Context(2), way).run);
    EXPECT_EQ(FoundIn(result), "");
    EXPECT_EQ(NotCheckableIn(result).size(), 0u);
    EXPECT_TRUE(result.judged.contains("CP-01") && result.judged.contains("CP-02"));
  }
}

// Ring attention, and gathers and sums that ranks put together of broadcasts, of two ranks and
// four.
TEST(ContextParallel, WhatMeetsByMessagesIsFollowed) {
  for (const MiniMessages messages : {MiniMessages::kRing, MiniMessages::kBroadcasts}) {
    for (const int32_t ranks : {2, 4}) {
      Case c = Context(2);
      c.instances[0].cp = ranks;
      Derive(c);
      MiniFaults way;
      way.messages = messages;
      const CheckResult result = CheckTensorParallel(RunMini(c, way).run);
      EXPECT_EQ(FoundIn(result), "");
      EXPECT_EQ(NotCheckableIn(result).size(), 0u);
      const std::set<std::string> all{"CP-01", "CP-02", "CP-03"};
      EXPECT_EQ(result.judged, all);
    }
  }
}

TEST(ContextParallel, WhatMessagesBringTwiceIsFound) {
  MiniFaults faults;
  faults.messages = MiniMessages::kRing;
  faults.messages_again = true;
  const CheckResult result = With(faults);
  EXPECT_EQ(FoundIn(result), "CP-01 CP-02");
  std::set<std::string> seen;
  for (const Finding& finding : result.findings) {
    if (finding.rank == 0) seen.insert(finding.seen);
  }
  const std::set<std::string> wanted{"the parts of the ranks [1,1]",
                                     "the summands of the ranks [0,1,1]"};
  EXPECT_EQ(seen, wanted);
}

// The sum of a ring is n times too large behind an all-reduce, the sum of two halves of the ranks
// is not: which, is not followed.
TEST(ContextParallel, CollectivesOfWhatMessagesBroughtTogetherAreNotJudged) {
  MiniFaults faults;
  faults.messages = MiniMessages::kRing;
  faults.all_reduce_behind = true;
  const CheckResult result = With(faults);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_EQ(NotCheckableIn(result), (std::set<std::string>{"CP-02", "CP-03"}));
}

// Summed or gathered by its own ranks, and sent to those of another sequence.
TEST(ContextParallel, WhatOtherRanksHaveBroughtTogetherIsFound) {
  MiniFaults faults;
  faults.passed_on = true;
  EXPECT_EQ(FoundIn(With(faults)), "CP-03");
}

TEST(ContextParallel, MessagesOfOtherRanksAreFound) {
  MiniFaults faults;
  faults.messages = MiniMessages::kBroadcasts;
  for (const char* group : {"dp_cp", "dp"}) {
    faults.cp_group = group;
    EXPECT_EQ(FoundIn(With(faults)), "CP-03") << group;
  }
}

TEST(ContextParallel, WhatMeetsOverOtherRanksIsFound) {
  MiniFaults faults;
  faults.cp_group = "dp_cp";
  EXPECT_EQ(FoundIn(With(faults)), "CP-03");
  faults.cp_group = "dp";
  EXPECT_EQ(FoundIn(With(faults)), "CP-03");
}

// Beside layers that are split over tp, each is judged over its own ranks.
TEST(ContextParallel, BesideSplitLayersEachMeetsOverItsOwnRanks) {
  Case c = MiniCase(8, [](InstanceSpec& spec) {
    spec.cp = spec.tp = spec.etp = 2;
    spec.context_parallel = spec.tensor_parallel = spec.sequence_parallel = true;
    spec.model.layers = 2;
    spec.script = "te";
  });
  const CheckResult good = CheckTensorParallel(RunMini(c).run);
  EXPECT_EQ(FoundIn(good), "");
  EXPECT_TRUE(good.judged.contains("CP-02") && good.judged.contains("TP-08"));
  MiniFaults faults;
  faults.cp_group = "tp";
  EXPECT_EQ(FoundIn(CheckTensorParallel(RunMini(c, faults).run)), "CP-03");
}

TEST(ContextParallel, WithoutRangesNothingIsJudged) {
  MiniRun mini = RunMini(Context());
  for (Trace& trace : mini.run.traces) trace.provides.memory = false;
  const CheckResult result = CheckTensorParallel(mini.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.empty());
  EXPECT_EQ(NotCheckableIn(result).size(), 3u);
}

}  // namespace
}  // namespace shardproof
