#include <gtest/gtest.h>

#include "conformance/cases/cases_for_test.h"
#include "conformance/model/model.h"

namespace shardproof {
namespace {

constexpr char kThere[] =
    "w4.zero3.adamw.do=tts.then.w2.zero1.k2.adamw.do=lts.then.w1.ddp.k4.adamw.do=lt";

TEST(LegsTest, AnIdWithLegsReadsBack) {
  const Case c = ParseId(kThere);
  EXPECT_EQ(Id(c), kThere);
  EXPECT_EQ(ParseId(Id(c)), c);
  EXPECT_EQ(c.world, 1);
  ASSERT_EQ(c.before.size(), 2u);
  const std::vector<Case> legs = LegsOf(c);
  ASSERT_EQ(legs.size(), 3u);
  EXPECT_EQ(Id(legs[0]), "w4.zero3.adamw.do=tts");
  EXPECT_EQ(Id(legs[1]), "w4.zero3.adamw.do=tts.then.w2.zero1.k2.adamw.do=lts");
  EXPECT_EQ(legs[1], ParseId(Id(legs[1])));
  EXPECT_EQ(legs[2], c);
}

TEST(LegsTest, ALegCountsOnFromWhatWasSaved) {
  const std::vector<Case> legs = LegsOf(ParseId(kThere));
  const auto calls = [&](size_t leg) {
    std::string text;
    for (const ScriptCall& call : ExpandScript(legs[leg].instances.front()))
      text += call.letter + (call.step >= 0 ? std::to_string(call.step) : "");
    return text;
  };
  EXPECT_EQ(calls(0), "ct0t1s");
  EXPECT_EQ(calls(1),
            "cl"
            "t2s");
  EXPECT_EQ(calls(2),
            "cl"
            "t3");
  EXPECT_EQ(legs[0].instances.front().saves_before, 0);
  EXPECT_EQ(legs[1].instances.front().saves_before, 1);
  EXPECT_EQ(legs[2].instances.front().saves_before, 2);
}

// What a load leaves out shows.
TEST(LegsTest, ALegBeginsWithOtherInitialValues) {
  const std::vector<Case> legs = LegsOf(ParseId(kThere));
  std::vector<float> first;
  for (const Case& leg : legs) {
    const Model model(leg.instances.front().model, TokensPerStep(leg.instances.front()));
    std::vector<float> values(4);
    model.InitialValue(0, 0, 0, 4, values.data());
    if (first.empty())
      first = values;
    else
      EXPECT_NE(values, first) << Id(leg);
  }
  EXPECT_EQ(legs[0].instances.front().model.start, 0);
  EXPECT_EQ(legs[2].instances.front().model.start, 2);
  // Nothing was saved that the second one could load.
  EXPECT_EQ(ParseId("w2.zero3.do=tsl").instances.front().model.start, 0);
}

TEST(LegsTest, WhatIsSavedLastCounts) {
  const Case c = ParseId("w2.zero3.do=tstts.then.w2.zero3.do=tlrlt");
  EXPECT_EQ(c.instances.front().resumed, 3);
  EXPECT_EQ(c.instances.front().saves_before, 2);
}

TEST(LegsTest, OneLegHasNothingBefore) {
  const Case c = ParseId("w2.zero3.do=tsl");
  EXPECT_EQ(c.instances.front().resumed, -1);
  EXPECT_EQ(LegsOf(c), std::vector<Case>{c});
}

TEST(LegsTest, AKilledLegIsPartOfTheId) {
  const std::string id = "w2.zero3.do=tsts.killed.then.w2.zero3.do=lt";
  const Case c = ParseId(id);
  EXPECT_EQ(Id(c), id);
  EXPECT_TRUE(c.before.front().killed);
  EXPECT_FALSE(c.killed);
  EXPECT_EQ(Id(LegsOf(c).front()), "w2.zero3.do=tsts") << "run by itself, it is not killed";
  EXPECT_NE(c, ParseId("w2.zero3.do=tsts.then.w2.zero3.do=lt"));
}

TEST(LegsTest, WhatCannotGoOnIsNamed) {
  for (const auto& [id, what] : std::vector<std::pair<std::string, std::string>>{
           {"w2.zero3.do=t.then.w2.zero3.do=t", "leg 1, w2.zero3.do=t: do=t saves nothing"},
           {"w2.zero3.do=t.then.w2.zero3.do=lt", "leg 1, w2.zero3.do=t: do=t saves nothing"},
           {"w2.zero3.do=s.then.w2.zero3.do=tt", "leg 2, w2.zero3.do=tt: do=tt does not load"},
           {"w2.zero3.do=s.then.w2.zero3.do=sl", "does not load what the leg before it saved"},
           {"w2.zero3.do=s.then.w2.s2.zero3.do=l", "another seed"},
           {"w2.zero3.do=s.then.w2.zero3.adamw.do=l", "optimizer adamw, the first leg has sgd"},
           {"w2.zero3.do=s.then.w4.zero3.do=l", "a step has 32 tokens, in the first leg 16"},
           {"w2.zero3.do=s.then.w2.zero3.tied.do=l", "another model"},
           {"w2.ddp.tp2.split.sp.moe4.cap75.do=s.then.w1.ddp.split.moe4.cap75.do=l",
            "routed in 1 parts, in the first leg in 2: cap, aux and zloss"},
           {"w2.ddp.cp2.ctx.moe4.aux.do=s.then.w1.ddp.moe4.aux.seq16.do=l",
            "routed in 1 parts, in the first leg in 2: cap, aux and zloss"},
           {"w2.ddp.tp2.etp2.split.splitvocab.do=s.odd.then.w1.ddp.split.do=l.odd",
            "another model"},
           {"w2.zero3.do=s.then.w2.zero3.hfsdp.do=l", "leg 2, w2.zero3.hfsdp.do=l: a leg is legal"},
           {"w2.zero3.do=s.then.w2.zero3.name=a.at0.span1+zero3.name=b.at1.do=l", "one engine"},
           {"w2.zero3.do=ts.killed", "killed is the first of two legs"},
           {"w2.zero3.do=s.then.w2.zero3.do=ls.killed", "killed is the first of two legs"},
           {"w2.zero3.do=st.killed.then.w2.zero3.do=l", "does not end with the save"},
           {"w2.zero3.do=s.killed.then.w2.zero3.do=ls.then.w2.zero3.do=l", "one more leg"},
           {"w2.zero3.killed.do=s.then.w2.zero3.do=l", "token 'killed' is not known"},
           {"w2.zero3.do=s.then.", "token '' is not known"}}) {
    EXPECT_NE(ErrorOf(id).find(what), std::string::npos) << id << ": " << ErrorOf(id);
  }
}

TEST(LegsTest, ExpertsMoveWithRoutingOnly) {
  EXPECT_EQ(ErrorOf("w4.zero3.ep4.moe4.do=s.then.w4.zero3.ep2.moe4.do=l"), "");
  EXPECT_NE(ErrorOf("w4.zero3.ep4.experts.do=s.then.w4.zero3.ep2.experts.do=l"), "");
}

}  // namespace
}  // namespace shardproof
