// The chain of parameter gathers in a plan, step by step: what starts when.
// property_tests/layer_wise_plan_property_test.cc has it for any programs.
#include "reference/plan/layer_wise.h"

#include <gtest/gtest.h>

#include <string>

#include "reference/plan/plan.h"
#include "reference/plan/tables_for_test.h"

namespace reference {
namespace {

// A model of one dense layer in three bucket groups: group 2 has the weight that forward needs
// first, group 1 the second, group 0 the others.
class LayerWiseTest : public testing::Test {
 protected:
  LayerWiseTest() {
    constexpr int32_t groups = 3;
    config_.strategy = ShardingStrategy::kLayerWise;
    config_.overlap_param_gather = true;
    buckets_.module_unit.assign(static_cast<size_t>(tables_.model().n_modules), kNoUnit);
    for (int32_t param = 0; param < kParams; ++param)
      buckets_.param_bucket.push_back(std::max(groups - 1 - param, 0));
    for (int32_t g = 0; g < groups; ++g) {
      buckets_.bucket_group.push_back(g);
      facts_.groups.push_back({100, true, true});
    }
    facts_.programs = {&tables_.program()};
  }
  // "G2 N2 R2": gather, need, release.
  static std::string Written(const Plan& plan) {
    std::string text;
    for (const Step& step : plan) {
      const char letter = step.what == Do::kGather    ? 'G'
                          : step.what == Do::kNeed    ? 'N'
                          : step.what == Do::kRelease ? 'R'
                                                      : ' ';
      if (letter != ' ') text += (text.empty() ? "" : " ") + (letter + std::to_string(step.group));
    }
    return text;
  }

  static constexpr int32_t kParams = 16;  // at least those of the tables
  const TablesForTest tables_{"d"};
  Config config_;
  ModelPlan buckets_;
  PlanFacts facts_{tables_.model(), config_, buckets_};
};

TEST_F(LayerWiseTest, TheNextStartsBeforeValuesAreCopied) {
  EXPECT_EQ(Written(PlanEvalStep(facts_)), "G2 N2 G1 R2 N1 G0 R1 N0 R0");
}

TEST_F(LayerWiseTest, ModulesReadWhatIsPublished) {
  const Plan plan = PlanEvalStep(facts_);
  std::vector<bool> there(3, false);
  for (const Step& step : plan) {
    if (step.what == Do::kRelease) At(there, step.group) = true;
    if (step.what != Do::kRun) continue;
    for (int32_t g : GroupsOf(facts_, step.operation, SPF_IN_PARAM)) EXPECT_TRUE(At(there, g)) << g;
  }
}

TEST_F(LayerWiseTest, ValuesThatArriveInPlaceAreNotCopied) {
  config_.aligned_layout = true;
  EXPECT_EQ(Written(PlanEvalStep(facts_)), "G2 N2 G1 N1 G0 N0");
}

TEST_F(LayerWiseTest, WhatIsTheSameEverywhereIsNotGathered) {
  facts_.stale = false;
  EXPECT_EQ(Written(PlanEvalStep(facts_)), "");
}

TEST_F(LayerWiseTest, FrozenBucketsAndThoseOfOneRankAreNotGathered) {
  facts_.groups[2].trainable = false;
  facts_.groups[0].travels = false;
  EXPECT_EQ(Written(PlanEvalStep(facts_)), "G1 N1 R1");
}

TEST_F(LayerWiseTest, WhatAProgramLeavesOutIsGatheredAllTheSame) {
  const spf_program nothing{sizeof nothing, 0, nullptr};
  facts_.programs = {&nothing};
  EXPECT_EQ(Written(PlanEvalStep(facts_)), "G2 N2 G1 R2 N1 G0 R1 N0 R0");
}

TEST_F(LayerWiseTest, WithoutOverlapGathersFollowTheInstall) {
  config_.overlap_param_gather = false;
  facts_.stale = false;
  const Plan plan = PlanInstall(facts_);
  EXPECT_EQ(plan[1].what, Do::kInstall);
  EXPECT_EQ(Written(plan), "G2 N2 G1 R2 N1 G0 R1 N0 R0");
}

TEST_F(LayerWiseTest, WithOverlapTheInstallGathersNothing) {
  EXPECT_EQ(Written(PlanInstall(facts_)), "");
}

}  // namespace
}  // namespace reference
