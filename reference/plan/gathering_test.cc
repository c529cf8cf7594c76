#include "reference/plan/gathering.h"

#include <gtest/gtest.h>

#include <string>

namespace reference {
namespace {

// Units 0, 1, 2 of 100 bytes, a bucket group each, in this order. "G0 N0 R0": gather, need,
// release; "K0 P0": a part is kept, and gathered from.
using Pass = Gathering::Pass;

class GatheringTest : public testing::Test {
 protected:
  GatheringTest() {
    config_.strategy = ShardingStrategy::kOptimGradsParams;
    config_.overlap_param_gather = true;
    for (int32_t unit = 0; unit < 3; ++unit) {
      buckets_.unit_modules.push_back(unit);
      buckets_.unit_groups.push_back({unit});
      buckets_.groups.push_back({unit, false, {unit}});
      order_.push_back({unit, unit, {unit}});
      facts_.groups.push_back({100, true, true});
      buckets_.unit_alike.push_back(true);
    }
  }
  std::string Written() const {
    std::string text;
    for (const Step& step : plan_) {
      text += (text.empty() ? "" : " ") + std::string(1, LetterOf(step));
      text += std::to_string(step.group);
    }
    return text;
  }
  static char LetterOf(const Step& step) {
    if (step.what == Do::kGather) return step.parts ? 'P' : 'G';
    if (step.what == Do::kReshard) return 'K';
    return step.what == Do::kNeed ? 'N' : 'R';
  }
  // One unit's forward, its backward, and the next microbatch's forward.
  std::string ThereAndBack(int32_t reshard_after_forward) {
    config_.prefetch_limit_bytes = 0;
    config_.reshard_after_forward = reshard_after_forward;
    Gathering gathering(facts_, plan_);
    gathering.Acquire(order_, 0);
    gathering.ReleaseAfterForward(0);
    gathering.Acquire(order_, 0);
    gathering.Release(0, Pass::kBackward);
    gathering.Acquire(order_, 0);
    return Written();
  }

  // Bucket groups 3, 4, 5: the copies of units 0, 1, 2 for backward.
  void AddCopies() {
    config_.backward_copies = true;
    AddBackwardCopies(buckets_);
    for (int32_t unit = 0; unit < 3; ++unit) facts_.groups.push_back({100, false, true});
  }

  spf_model model_{};
  Config config_;
  ModelPlan buckets_;
  PlanFacts facts_{model_, config_, buckets_};
  GatherOrder order_;
  Plan plan_;
};

TEST_F(GatheringTest, TheNextUnitIsGatheredBeforeThisOneIsWaitedFor) {
  Gathering gathering(facts_, plan_);
  gathering.Acquire(order_, 0);
  gathering.Release(0, Pass::kBackward);
  gathering.Acquire(order_, 1);
  EXPECT_EQ(Written(), "G0 G1 N0 R0 G2 N1");
}

TEST_F(GatheringTest, ALimitOfNothingGathersNothingAhead) {
  config_.prefetch_limit_bytes = 0;
  Gathering gathering(facts_, plan_);
  gathering.Prefetch(order_);
  gathering.Acquire(order_, 0);
  EXPECT_EQ(Written(), "G0 N0");
}

TEST_F(GatheringTest, WhatDoesNotFitStopsTheOrder) {
  facts_.groups[1].bytes = 300;
  config_.prefetch_limit_bytes = 200;
  Gathering gathering(facts_, plan_);
  gathering.Acquire(order_, 0);
  EXPECT_EQ(Written(), "G0 N0") << "unit 2 would fit, and would come before unit 1";
}

TEST_F(GatheringTest, AUnitThatComesAgainIsNotGatheredAheadOfItsRelease) {
  order_ = {order_[0], order_[1], order_[0]};
  config_.prefetch_limit_bytes = 1000;
  Gathering gathering(facts_, plan_);
  gathering.Acquire(order_, 0);
  EXPECT_EQ(Written(), "G0 G1 N0");
  gathering.Release(0, Pass::kBackward);
  gathering.Acquire(order_, 1);
  EXPECT_EQ(Written(), "G0 G1 N0 R0 G0 N1");
}

TEST_F(GatheringTest, LazyReleaseHappensBeforeTheNextGather) {
  config_.prefetch_limit_bytes = 0;
  Gathering gathering(facts_, plan_);
  gathering.Acquire(order_, 0);
  gathering.ReleaseLazily(0, Pass::kBackward);
  EXPECT_EQ(Written(), "G0 N0");
  gathering.Acquire(order_, 1);
  EXPECT_EQ(Written(), "G0 N0 R0 G1 N1");
}

TEST_F(GatheringTest, WhatIsReleasedLazilyAndNeededAgainStays) {
  config_.prefetch_limit_bytes = 0;
  Gathering gathering(facts_, plan_);
  gathering.Acquire(order_, 0);
  gathering.ReleaseLazily(0, Pass::kBackward);
  gathering.Acquire(order_, 0);
  gathering.Acquire(order_, 1);
  EXPECT_EQ(Written(), "G0 N0 G1 N1");
}

TEST_F(GatheringTest, AReleaseWaitsForAGatherThatNobodyNeeded) {
  Gathering gathering(facts_, plan_);
  gathering.Prefetch(order_);
  gathering.ReleaseAll();
  EXPECT_EQ(Written(), "G0 N0 R0");
}

TEST_F(GatheringTest, OnlyTheFirstGatherSinceAnInstallIsMarked) {
  config_.prefetch_limit_bytes = 0;
  Gathering gathering(facts_, plan_);
  for (int32_t times = 0; times < 2; ++times) {
    gathering.Acquire(order_, 0);
    gathering.Release(0, Pass::kBackward);
  }
  EXPECT_TRUE(plan_[0].first);
  EXPECT_FALSE(plan_[3].first);
}

TEST_F(GatheringTest, WithDoubleBuffersAThirdUnitWaitsForOne) {
  config_.prefetch_limit_bytes = 1000;
  config_.double_buffer = true;
  Gathering gathering(facts_, plan_);
  gathering.Prefetch(order_);
  EXPECT_EQ(Written(), "G0 G1");
  gathering.Acquire(order_, 0);
  EXPECT_EQ(Written(), "G0 G1 N0");
  gathering.Release(0, Pass::kBackward);
  gathering.Acquire(order_, 1);
  EXPECT_EQ(Written(), "G0 G1 N0 R0 G2 N1");
}

TEST_F(GatheringTest, UnitsWithoutDoubleBuffersAreNotCounted) {
  config_.prefetch_limit_bytes = 1000;
  config_.double_buffer = true;
  buckets_.unit_alike[0] = false;
  Gathering gathering(facts_, plan_);
  gathering.Prefetch(order_);
  EXPECT_EQ(Written(), "G0 G1 G2");
}

TEST_F(GatheringTest, AfterForwardAUnitGoes) {
  EXPECT_EQ(ThereAndBack(1), "G0 N0 R0 G0 N0 R0 G0 N0");
}

TEST_F(GatheringTest, AfterForwardAUnitStays) { EXPECT_EQ(ThereAndBack(0), "G0 N0 R0 G0 N0"); }

TEST_F(GatheringTest, AfterForwardAUnitIsKeptInParts) {
  EXPECT_EQ(ThereAndBack(4), "G0 N0 K0 P0 N0 R0 G0 N0");
}

TEST_F(GatheringTest, ExpertsAreNotKeptInParts) {
  buckets_.groups[0].expert = true;
  EXPECT_EQ(ThereAndBack(4), "G0 N0 R0 G0 N0 R0 G0 N0");
}

TEST_F(GatheringTest, WithoutShardedParametersAGatherIsMadeOnceSinceTheInstall) {
  config_.strategy = ShardingStrategy::kOptim;
  config_.overlap_param_gather = false;
  Gathering gathering(facts_, plan_);
  gathering.Start(order_);
  gathering.Acquire(order_, 0);
  gathering.Release(0, Pass::kBackward);
  gathering.Acquire(order_, 0);
  EXPECT_EQ(Written(), "G0 G1 G2 N0 N1 N2");
  plan_.clear();
  facts_.stale = false;
  Gathering later(facts_, plan_);
  later.Start(order_);
  EXPECT_EQ(Written(), "");
}

TEST_F(GatheringTest, ACopyForBackwardComesAndGoesByItself) {
  AddCopies();
  config_.prefetch_limit_bytes = 0;
  Gathering gathering(facts_, plan_);
  gathering.Acquire(order_, 0);
  gathering.Acquire({{0, 0, {3}}}, 0);
  gathering.Release(0, Pass::kForward);
  gathering.Release(0, Pass::kBackward);
  EXPECT_EQ(Written(), "G0 N0 G3 N3 R0 R3");
}

TEST_F(GatheringTest, BesideAnotherForwardOnlyACopyForBackwardGoes) {
  config_.recompute_modules = {"norm"};
  for (const bool copies : {false, true}) {
    if (copies) AddCopies();
    plan_.clear();
    Gathering gathering(facts_, plan_);
    gathering.Acquire({{0, 0, {0}}}, 0);
    if (copies) gathering.Acquire({{0, 0, {3}}}, 0);
    gathering.Release(0, Pass::kBackwardBeside);
    gathering.Release(0, Pass::kForward);
    EXPECT_EQ(Written(), copies ? "G0 N0 G3 N3 R3 R0" : "G0 N0 R0");
  }
}

TEST_F(GatheringTest, AfterBackwardForwardsCopyGoesTooIfModulesAreRunAgain) {
  AddCopies();
  config_.recompute = true;
  Gathering gathering(facts_, plan_);
  gathering.Acquire({{0, 0, {0, 3}}}, 0);
  gathering.Release(0, Pass::kBackward);
  EXPECT_EQ(Written(), "G0 G3 N0 N3 R0 R3");
}

TEST_F(GatheringTest, AnEvalGathersForwardsCopiesAlone) {
  AddCopies();
  facts_.stale = false;
  Gathering gathering(facts_, plan_);
  gathering.Acquire({{0, 0, {0, 3}}}, 0);
  EXPECT_FALSE(plan_[0].first);
  EXPECT_TRUE(plan_[1].first) << "weights were installed since copies for backward were gathered";
}

TEST_F(GatheringTest, DoubleBuffersAreOfEachCopy) {
  AddCopies();
  config_.prefetch_limit_bytes = 1000;
  config_.double_buffer = true;
  Gathering gathering(facts_, plan_);
  gathering.Prefetch(order_);
  gathering.Prefetch({{2, 2, {5}}, {1, 1, {4}}, {0, 0, {3}}});
  EXPECT_EQ(Written(), "G0 G1 G5 G4");
}

}  // namespace
}  // namespace reference
