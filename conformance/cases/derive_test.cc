#include <gtest/gtest.h>

#include "conformance/cases/bounds.h"
#include "conformance/cases/case.h"
#include "conformance/cases/cases_for_test.h"

namespace shardproof {
namespace {

void ExpectError(const std::string& id, const std::string& part) {
  EXPECT_NE(ErrorOf(id).find(part), std::string::npos) << id << ": " << ErrorOf(id);
}

TEST(DeriveTest, DivisorIsDataRanksTimesMicrobatches) {
  const Case c = ParseId("w12.zero3.tp2.etp2.k2.seq4");
  EXPECT_EQ(GradDivisor(c.instances[0]), 12);
  EXPECT_EQ(TokensPerStep(c.instances[0]), 48);
  EXPECT_EQ(c.instances[0].model.d_odd, 3);
}

TEST(DeriveTest, DivisorOfPerTokenLossIsTokens) {
  const Case c = ParseId("w6.zero3.pertoken.k2");
  EXPECT_EQ(GradDivisor(c.instances[0]), 96);
  EXPECT_EQ(c.instances[0].model.d_odd, 3);
}

TEST(DeriveTest, ModelFollowsEngineDtypes) {
  const Case c = ParseId("w4.zero3.bf16.acc16.ep2.experts");
  EXPECT_TRUE(c.instances[0].model.bf16_params);
  EXPECT_TRUE(c.instances[0].model.narrow);
  EXPECT_EQ(c.instances[0].model.ep, 2);
  EXPECT_EQ(ParseId("w4.zero3.ep2").instances[0].model.ep, 1);
}

TEST(DeriveTest, InexactDivisorsAreRefused) {
  ExpectError("w7.zero3", "odd part 7");
  ExpectError("w13.zero3", "odd part 13");
  ExpectError("w15.zero3", "odd part 15");
  ExpectError("w5.zero3.k3", "odd part 15");
  EXPECT_EQ(ErrorOf("w3.zero3.k3"), "");
}

// Queues are of a device, whose streams belong to all engines.
TEST(DeriveTest, EnginesAgreeOnTheQueuesOfADevice) {
  EXPECT_EQ(QueuesOf(ParseId("w4.zero3.onequeue")), 1);
  EXPECT_EQ(QueuesOf(ParseId("w4.zero3.onecomm")), 0);
  EXPECT_EQ(QueuesOf(ParseId("w4.zero3.name=a.onequeue+ddp.name=b.onequeue")), 1);
  ExpectError("w4.zero3.name=a.onequeue+ddp.name=b", "share the one queue");
  ExpectError("w4.zero3.name=a+ddp.name=b.onecomm+ddp.name=c.onequeue", "share the one queue");
  EXPECT_EQ(ErrorOf("w4.zero3.name=a.onecomm+ddp.name=b"), "");
}

// No numbers are compared there: neither tokens nor divisors have a bound.
TEST(DeriveTest, WorldsUpTo16384RanksCanBeAsked) {
  for (const char* id : {"w65.zero3", "w16384.zero3.n16.twin.tp8.etp8.k2", "w16384.lw.twin.muon",
                         "w16384.zero3.n16.twin.tp8.etp8.ep64.moe64.k2.1f1b"}) {
    EXPECT_EQ(ErrorOf(id), "");
    EXPECT_TRUE(ParseId(id).illegal.empty());
    EXPECT_EQ(Id(ParseId(Id(ParseId(id)))), Id(ParseId(id)));
  }
  ExpectError("w16385.zero3", "1 to 16384 ranks");
  EXPECT_FALSE(HasNumbers(ParseId("w65.zero3").instances[0]));
  EXPECT_TRUE(HasNumbers(ParseId("w64.zero3").instances[0]));
}

TEST(DeriveTest, TooManyTokensAreRefused) {
  EXPECT_EQ(ErrorOf("w16.zero3.k8"), "");                      // 1024 tokens
  ExpectError("w16.zero3.k8.seq16", "2048 tokens in a step");  // bound 1040
  ExpectError("w16.zero3.k8.tied", "2048 exceeds 1040");
  EXPECT_EQ(ErrorOf("w16.zero3.k2.wire16"), "");
  ExpectError("w16.zero3.k4.wire16", "512 exceeds 256 (bf16 gradients)");
}

TEST(DeriveTest, LongestSequenceKeepsTheBound) {
  InstanceSpec spec = ParseId("w16.zero3.k3.seq4").instances[0];
  EXPECT_EQ(LongestSequence(spec), 4);
  spec.grad_comm_dtype = KnobDtype::kBf16;
  EXPECT_EQ(LongestSequence(spec), 1);
}

TEST(DeriveTest, ChunksOfTheLossShareTheTokens) {
  EXPECT_EQ(ParseId("w4.zero3.loss4").instances[0].model.loss_chunks, 4);
  EXPECT_EQ(ParseId("w4.zero3.loss4").instances[0].model.sequence, 8);
  ExpectError("w2.ddp.loss3", "does not divide the sequence of 8 tokens");
  ExpectError("w2.ddp.loss16", "does not divide the sequence of 8 tokens");
  ExpectError("w4.zero3.ep2.moe4.mtp.loss2", "a head of its own");
  ExpectError("w4.ddp.pp2.k2.vpp2.layers4.loss2", "one node");
  // An engine refuses it, so that its model is that of a loss in one piece.
  EXPECT_EQ(ParseId("w8.zero3.loss0").instances[0].model.loss_chunks, 1);
  // A leg may have other chunks than the one before: the model is the same.
  EXPECT_EQ(ErrorOf("w2.ddp.loss2.do=ts.then.w2.ddp.loss4.do=lt"), "");
}

TEST(DeriveTest, RanksOutsideTheWorldCannotBeAsked) {
  ExpectError("w4.zero3.span6", "not in a world of 4");
  ExpectError("w4.zero3.at4", "not in a world of 4");
  ExpectError("w0.zero3", "world = 0");
}

TEST(DeriveTest, ExplicitGroupsNeedAGrid) {
  ExpectError("w8.zero3.tp3", "not divisible");
  ExpectError("w8.zero3.cp2.order=tp-dp-pp", "does not list cp");
}

TEST(DeriveTest, WrongTwinThatIsRightCannotBeAsked) {
  ExpectError("w8.zero3.twin=default_order", "would get the right one");
  ExpectError("w8.zero3.twin=full_span", "would get the right one");
  ExpectError("w1.zero3.twin=permuted", "would get the right one");
  ExpectError("w8.zero3.grid.twin=short", "is handed no twin");
}

TEST(DeriveTest, IllegalCombinationStandsAlone) {
  ExpectError("w8.zero3.k0+zero3.name=b", "must be the only instance");
  ExpectError("w8.zero3.k0.span4", "asked of the whole world");
}

TEST(DeriveTest, ReplicasMustMeetTheSameExpert) {
  ExpectError("w8.zero3.tp2.ep2.experts", "meets two experts");
  EXPECT_EQ(ErrorOf("w8.zero3.tp2.ep2.etp2.experts"), "");
  ExpectError("w8.zero3.tp2.experts", "is etp = tp?");
}

TEST(DeriveTest, UnknownWordsOfTheModelCannotBeAsked) {
  ExpectError("w8.zero3.frozen=head", "frozen = head");
  ExpectError("w8.zero3.unused=sometimes", "unused = sometimes");
  ExpectError("w8.zero3.twin=odd", "twin = odd");
  ExpectError("w8.zero3.do=txt", "no entry call 'x'");
  ExpectError("w8.zero3.do=tl", "nothing was saved");
}

TEST(DeriveTest, ExpertsFollowTheGrid) {
  const Case c = ParseId("w8.zero3.ep4.moe8");
  EXPECT_EQ(c.instances[0].model.ep, 4);
  EXPECT_EQ(c.instances[0].model.moe.experts, 8);
  EXPECT_EQ(c.instances[0].model.pp, 1);
  EXPECT_EQ(ParseId("w8.zero3.pp2").instances[0].model.pp, 1);  // two copies, no stages
  const Case stages = ParseId("w8.ddp.pp2.k2.layers4.vpp2");
  EXPECT_EQ(stages.instances[0].model.pp, 2);
  EXPECT_EQ(stages.instances[0].model.chunks, 2);
}

TEST(DeriveTest, ExpertsThatDoNotExistCannotBeAsked) {
  ExpectError("w8.zero3.ep4.moe6", "ep = 4: does not divide moe = 6");
  ExpectError("w8.zero3.moe-1", "moe = -1");
  ExpectError("w8.zero3.mtp", "mtp without moe");
  ExpectError("w8.zero3.aux", "without moe");
  ExpectError("w8.zero3.ep2.1f1b", "1f1b without moe");
  ExpectError("w8.zero3.moe2.top3", "top = 3: 1 to 2 experts");
  ExpectError("w8.zero3.moe8.groups3", "groups = 3");
  ExpectError("w8.zero3.moe8.groups2.topgroups3", "topgroups = 3");
  ExpectError("w8.zero3.moe8.groups8", "more than the experts of topgroups = 1");
  ExpectError("w8.zero3.moe8.pad", "pad without cap");
  ExpectError("w8.zero3.moe8.cap-1", "cap = -1");
  ExpectError("w8.zero3.moe8.layers1.moelayers=odd", "has no such layer");
  ExpectError("w8.zero3.moe8.moelayers=some", "moelayers = some");
  ExpectError("w8.zero3.moe8.score=max", "score = max");
  ExpectError("w8.zero3.moe8.skew=left", "skew = left");
  ExpectError("w8.zero3.moe8.skew=rank", "leaves no rank, ep is 1");
  ExpectError("w8.zero3.ep2.moe8.groups2.topgroups2.skew=rank",
              "8 experts in 2 groups are too few");
  ExpectError("w8.zero3.ep2.moe4.top4.skew=rank", "half of moe = 4");
  ExpectError("w8.zero3.moe4.groups2.skew=empty", "leaves fewer experts than top = 2");
  ExpectError("w8.zero3.moe4.cap401", "cap = 401");
  ExpectError("w8.zero3.moe2.skew=empty", "leaves fewer experts than top = 2");
  ExpectError("w8.zero3.moe8.experts.ep2", "moe with experts");
  ExpectError("w8.zero3.moe8.reused", "moe with reused");
  ExpectError("w8.zero3.moe8.unused=step", "moe with unused = step");
  ExpectError("w8.zero3.moe8.odd", "moe with odd");
}

TEST(DeriveTest, EachSampleReachesEveryExpertOnce) {
  EXPECT_EQ(ErrorOf("w8.zero3.tp2.ep2.etp2.moe8"), "");
  EXPECT_EQ(ErrorOf("w8.zero3.cp2.ep8.moe8"), "");
  EXPECT_EQ(ErrorOf("w8.zero3.ep2.pp2.moe8"), "");
  ExpectError("w8.zero3.tp2.ep2.moe8", "is etp = tp?");
  ExpectError("w8.zero3.tp2.ep2.etp2.split.sp.moe8", "etp = 2: with sp and moe");
  ExpectError("w8.zero3.tp2.ep2.etp2.split.sp.experts", "sp with experts: those without routing");
  ExpectError("w8.zero3.tp2.ep2.split.sp.moe8.mtp", "sp with mtp");
  ExpectError("w8.zero3.cp2.ep2.ctx.experts", "ctx with experts: those without routing");
  ExpectError("w8.zero3.cp2.ep2.ctx.moe8.mtp", "ctx with mtp");
}

TEST(DeriveTest, AVocabularyIsSplitWhereItCanBe) {
  EXPECT_EQ(ErrorOf("w4.zero3.tp4.etp4.split.splitvocab.odd.heads4"), "");
  ExpectError("w4.zero3.tp2.ep2.etp2.split.splitvocab.moe8.mtp", "splitvocab with mtp");
  ExpectError("w4.zero3.tp2.etp2.split.splitvocab.loss2", "loss = 2: with splitvocab");
}

TEST(DeriveTest, StagesThatDoNotExistCannotBeAsked) {
  ExpectError("w8.ddp.vpp2", "needs a pipeline, pp is 1");
  ExpectError("w8.ddp.vpp0", "vpp = 0");
  ExpectError("w8.ddp.pp2.k2.vpp2.layers6", "not divisible by pp * vpp = 4");
  ExpectError("w8.ddp.pp2.k3.vpp2.layers4", "k = 3");
  ExpectError("w8.ddp.pp2.k2.vpp2.layers4.tied", "is not tied");
  ExpectError("w8.ddp.pp2.k2.vpp2.layers4.moe8.mtp", "is not mtp");
}

TEST(DeriveTest, SchedulesThatSayNothingCannotBeAsked) {
  ExpectError("w8.ddp.badscale4", "use ls");
  ExpectError("w8.ddp.badscale3.ls2", "ls is given too");
  ExpectError("w8.ddp.ls99", "ls = 99");
  ExpectError("w8.ddp.graph=always", "graph = always");
  ExpectError("w8.ddp.recompute=head", "recompute = head");
  ExpectError("w8.ddp.recompute=norm,norm", "each once");
  ExpectError("w8.ddp.recompute=norm.recompute", "recompute is all of it");
}

TEST(DeriveTest, PredictingFurtherUsesHeadAndEmbeddingAgain) {
  EXPECT_EQ(ErrorOf("w16.zero3.k8.moe8"), "");  // 1024 tokens
  ExpectError("w16.zero3.k8.moe8.mtp", "2048 exceeds 1040");
  ExpectError("w16.zero3.k4.moe8.mtp.tied", "2048 exceeds 1040");
}

TEST(DeriveTest, InstancesHaveDifferentNames) {
  ExpectError("w8.zero3+zero3", "two instances are named engine");
}

}  // namespace
}  // namespace shardproof
