#include <gtest/gtest.h>

#include "conformance/cases/bounds.h"
#include "conformance/cases/case.h"

namespace shardproof {
namespace {

std::string ErrorOf(const std::string& id) {
  try {
    ParseId(id);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

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
  spec.grad_comm_dtype = "bf16";
  EXPECT_EQ(LongestSequence(spec), 1);
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

TEST(DeriveTest, InstancesHaveDifferentNames) {
  ExpectError("w8.zero3+zero3", "two instances are named engine");
}

}  // namespace
}  // namespace shardproof
