#include "reference/plan/reducing.h"

#include <gtest/gtest.h>

#include <string>

namespace reference {
namespace {

// Bucket groups 0, 1, 2. "B0 F0 R0! W0": begin, fold, reduce (! completes the step's gradient),
// reduced.
class ReducingTest : public testing::Test {
 protected:
  ReducingTest() { facts_.groups.assign(3, {100, true, true}); }
  void Pass(Reducing& reducing, bool last) {
    for (int32_t g = 0; g < 3; ++g) {
      reducing.Begin({g});
      reducing.HandOver({g}, last);
    }
  }
  std::string Written() const {
    std::string text;
    for (const Step& step : plan_) {
      const char letter = step.what == Do::kBegin    ? 'B'
                          : step.what == Do::kFold   ? 'F'
                          : step.what == Do::kReduce ? 'R'
                                                     : 'W';
      text += (text.empty() ? "" : " ") + std::string(1, letter) + std::to_string(step.group) +
              (step.last ? "!" : "");
    }
    return text;
  }

  spf_model model_{};
  Config config_;
  ModelPlan buckets_;
  PlanFacts facts_{model_, config_, buckets_};
  Plan plan_;
};

TEST_F(ReducingTest, OneReductionIsUnderWayWhileTheNextGradientIsMade) {
  config_.strategy = ShardingStrategy::kOptimGrads;
  config_.overlap_grad_reduce = true;
  Reducing reducing(facts_, plan_);
  Pass(reducing, true);
  EXPECT_EQ(Written(), "B0 R0! B1 R1! W0 B2 R2!");
  reducing.Finish();
  EXPECT_EQ(Written(), "B0 R0! B1 R1! W0 B2 R2! W1 W2");
}

// Unit 0 is begun, and its layer runs again: it has a buffer until the end.
TEST_F(ReducingTest, WithDoubleBuffersAnUnfinishedUnitLeavesOne) {
  for (const bool double_buffer : {false, true}) {
    config_.strategy = ShardingStrategy::kOptimGrads;
    config_.double_buffer = double_buffer;
    buckets_.unit_alike = {true, true, true};
    buckets_.groups = {{0, false, {0}}, {1, false, {1}}, {2, false, {2}}};
    plan_.clear();
    Reducing reducing(facts_, plan_);
    reducing.Begin({0});
    reducing.Begin({1});
    reducing.HandOver({1}, true);
    reducing.Begin({2});
    EXPECT_EQ(Written(), double_buffer ? "B0 B1 R1! W1 B2" : "B0 B1 R1! B2");
  }
}

TEST_F(ReducingTest, ShardedGradientsAreReducedInEveryMicrobatch) {
  config_.strategy = ShardingStrategy::kOptimGrads;
  facts_.groups.resize(1);
  Reducing reducing(facts_, plan_);
  for (const bool last : {false, true}) {
    reducing.Begin({0});
    reducing.HandOver({0}, last);
  }
  EXPECT_EQ(Written(), "B0 R0 B0 R0!");
}

TEST_F(ReducingTest, FullGradientsAreReducedInTheLastMicrobatch) {
  config_.strategy = ShardingStrategy::kOptim;
  config_.overlap_grad_reduce = true;
  Reducing reducing(facts_, plan_);
  Pass(reducing, false);
  EXPECT_EQ(Written(), "B0 B1 B2");
  Pass(reducing, true);
  EXPECT_EQ(Written(), "B0 B1 B2 B0 R0! B1 R1! B2 R2!");
}

TEST_F(ReducingTest, WithoutOverlapAllAreReducedAtTheEnd) {
  config_.strategy = ShardingStrategy::kOptim;
  Reducing reducing(facts_, plan_);
  Pass(reducing, true);
  EXPECT_EQ(Written(), "B0 B1 B2");
  reducing.Finish();
  EXPECT_EQ(Written(), "B0 B1 B2 R0! R1! R2! W0 W1 W2");
}

TEST_F(ReducingTest, MainGradientsOfAnotherDtypeAreFolded) {
  config_.strategy = ShardingStrategy::kOptim;
  config_.main_grads_dtype = config_.grad_comm_dtype = SPF_BF16;
  Reducing reducing(facts_, plan_);
  Pass(reducing, false);
  EXPECT_EQ(Written(), "B0 F0 B1 F1 B2 F2");
}

TEST_F(ReducingTest, ACastWaitsForTheBlockOfTheReductionBeforeTheLast) {
  config_.strategy = ShardingStrategy::kOptim;
  config_.overlap_grad_reduce = true;
  config_.grad_comm_dtype = SPF_BF16;
  Reducing reducing(facts_, plan_);
  Pass(reducing, true);
  EXPECT_EQ(Written(), "B0 R0! B1 R1! B2 W0 R2!");
}

TEST_F(ReducingTest, FrozenGroupsHaveNoGradient) {
  config_.strategy = ShardingStrategy::kOptimGrads;
  facts_.groups[1].trainable = false;
  Reducing reducing(facts_, plan_);
  Pass(reducing, true);
  EXPECT_EQ(Written(), "B0 R0! W0 B2 R2!");
}

TEST_F(ReducingTest, AGradientThatHasBegunIsNotBegunAgain) {
  Reducing reducing(facts_, plan_);
  reducing.Begin({0, 1});
  reducing.Begin({1});
  EXPECT_EQ(Written(), "B0 B1");
}

}  // namespace
}  // namespace reference
