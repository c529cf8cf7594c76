// Traces of a small engine whose ranks of tp hold parts of the sequence, good and with one
// departure each.
#include <gtest/gtest.h>

#include "conformance/checks/tensor_parallel/tensor_parallel.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

Case Parts(int32_t microbatches = 1) {
  return MiniCase(4, [&](InstanceSpec& spec) {
    spec.tp = spec.etp = 2;
    spec.tensor_parallel = spec.sequence_parallel = true;
    spec.microbatches = microbatches;
    spec.model.layers = 2;
    spec.script = "te";
  });
}

CheckResult With(const MiniFaults& faults) {
  return CheckTensorParallel(RunMini(Parts(), faults).run);
}

TEST(SequenceParallel, WhatMeetsInItsPlaceIsGood) {
  const CheckResult result = CheckTensorParallel(RunMini(Parts(2)).run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_EQ(NotCheckableIn(result).size(), 0u);
  for (const char* id : {"TP-01", "TP-02", "TP-03", "TP-04", "TP-05", "TP-08", "TP-09"})
    EXPECT_TRUE(result.judged.contains(id)) << id;
}

// An engine that is split without parts shows nothing of these.
TEST(SequenceParallel, WithoutPartsNothingIsAsked) {
  Case c = Parts();
  c.instances[0].sequence_parallel = false;
  Derive(c);
  const CheckResult result = CheckTensorParallel(RunMini(c).run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_FALSE(result.judged.contains("TP-08"));
  EXPECT_FALSE(result.judged.contains("TP-09"));
}

TEST(SequenceParallel, ASumThatIsScatteredUnsummedOrSummedTwiceIsFound) {
  for (const int32_t sums : {0, 2}) {
    MiniFaults faults;
    faults.tp_sums_forward = sums;
    EXPECT_EQ(FoundIn(With(faults)), "TP-01") << sums;
    faults.rank = 3;
    EXPECT_EQ(FoundIn(With(faults)), "TP-01") << sums;
    MiniFaults backward;
    backward.tp_sums_backward = sums;
    EXPECT_EQ(FoundIn(With(backward)), "TP-02") << sums;
  }
}

TEST(SequenceParallel, APartThatIsReadForTheWholeIsFound) {
  MiniFaults faults;
  faults.tp_gathers = 0;
  faults.rank = 2;
  const CheckResult result = With(faults);
  EXPECT_EQ(FoundIn(result), "TP-08");
  EXPECT_EQ(result.findings.at(0).rank, 2);
  EXPECT_EQ(result.findings.at(0).seen, "the part of this rank");
}

// From the second step on the buffers hold what the first one has gathered. (Those of sums this
// engine has written since.)
TEST(SequenceParallel, WhatAnEarlierStepHasLeftIsFound) {
  Case c = Parts();
  c.instances[0].script = "tt";
  Derive(c);
  MiniFaults faults;
  EXPECT_EQ(FoundIn(CheckTensorParallel(RunMini(c, faults).run)), "");
  faults.tp_stale = true;
  const CheckResult result = CheckTensorParallel(RunMini(c, faults).run);
  EXPECT_EQ(FoundIn(result), "TP-08");
  EXPECT_EQ(result.findings.at(0).step, 1);
  EXPECT_EQ(result.findings.at(0).seen, "what another microbatch or step has left there");
}

// Legal all the same: gathered again, summed in whole and cut, parts summed before the reductions,
// all of it in messages.
TEST(SequenceParallel, OtherWaysToMeetAreGood) {
  MiniFaults again, whole, first, messages;
  again.tp_gathers = 2;
  whole.tp_whole_sums = true;
  first.tp_parts_first = true;
  messages.messages = MiniMessages::kRing;
  for (const MiniFaults& way : {again, whole, first, messages}) {
    const MiniRun mini = RunMini(Parts(2), way);
    const CheckResult result = CheckTensorParallel(mini.run);
    EXPECT_EQ(FoundIn(result), "");
    EXPECT_EQ(NotCheckableIn(result).size(), 0u);
    EXPECT_TRUE(result.judged.contains("TP-08") && result.judged.contains("TP-09"));
  }
}

TEST(SequenceParallel, WhatMeetsOverOtherRanksIsFound) {
  MiniFaults faults;
  faults.tp_group = "dp_cp";
  EXPECT_EQ(FoundIn(With(faults)), "TP-03");
}

TEST(SequenceParallel, GradientsOfPartsThatAreNotSummedOnceAreFound) {
  for (const int32_t sums : {0, 2}) {
    MiniFaults faults;
    faults.tp_parts = sums;
    const CheckResult result = With(faults);
    EXPECT_EQ(FoundIn(result), "TP-09") << sums;
    EXPECT_EQ(result.findings.at(0).seen,
              sums == 0 ? "none of them" : "not these, each of them once");
  }
}

// On one rank of tp alone: the others wait for it (GE-01), and what comes behind is not judged.
TEST(SequenceParallel, WhatIsSummedOnOneRankAloneIsNotJudged) {
  MiniFaults faults;
  faults.tp_parts = 0;
  faults.rank = 1;
  const CheckResult result = With(faults);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_FALSE(result.judged.contains("TP-09"));
}

// Sums of such gradients are no exchange of Muon's shards.
TEST(SequenceParallel, SumsOfPartsAreNoExchangeOfMuon) {
  Case c = Parts();
  InstanceSpec& spec = c.instances[0];
  spec.strategy = ShardingStrategy::kNoShard;
  spec.optimizer = Optimizer::kMuon;
  spec.muon.tp_mode = MuonTpMode::kDuplicated;
  spec.model.layers = 1;
  spec.model.width = 64;  // half of the gradient of a norm is more than single numbers
  Derive(c);
  EXPECT_EQ(FoundIn(CheckTensorParallel(RunMini(c).run)), "TP-07");
}

// Other gradients are whole on each rank of tp.
TEST(SequenceParallel, GradientsOfTheWholeSequenceThatAreSummedOverTpAreFound) {
  MiniFaults faults;
  faults.reduce_over_tp = true;
  const CheckResult result = With(faults);
  EXPECT_NE(FoundIn(result).find("TP-04"), std::string::npos);
}

}  // namespace
}  // namespace shardproof
