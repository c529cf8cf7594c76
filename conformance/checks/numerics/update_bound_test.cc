#include "conformance/checks/numerics/update_bound.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/checks/numerics/numerics.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

// A parameter's published value after a train step (entry call 2), of a run whose optimizer rounds
// its own way.
class BoundedRun : public testing::Test {
 protected:
  BoundedRun() : mini_(RunMini(MiniCase(2))) {
    At(mini_.run.traces, 0).bounded_updates = true;
    At(mini_.run.traces, 1).bounded_updates = true;
  }
  double& Published(int32_t call) {
    Trace& trace = At(mini_.run.traces, 0);
    for (const Event& event : trace.events) {
      if (event.kind == EventKind::kPublish && event.result == SPF_RESULT_PARAM &&
          event.call == call)
        return At(trace.values, event.values);
    }
    throw std::logic_error("no such publish");
  }
  // Into the value, so many units in the last place of fp32.
  static void Move(double& value, int units) {
    auto moved = static_cast<float>(value == 0 ? 1e-9 : value);
    for (int i = 0; i < units; ++i) moved = std::nextafterf(moved, INFINITY);
    value = moved;
  }
  MiniRun mini_;
};

bool TellsBound(const CheckResult& result) {
  for (const NotCheckable& row : result.not_checkable)
    if (row.requirement == "FS-24" && row.kind == NotCheckable::Kind::kBounded) return true;
  return false;
}

TEST_F(BoundedRun, AUnitInTheLastPlaceIsWithinTheBoundAndIsTold) {
  Move(Published(2), 1);
  const CheckResult result = CheckPublished(mini_.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(TellsBound(result));
  EXPECT_TRUE(result.judged.contains("FS-24"));
}

// Behind the publish the recorder sets the exact value.
TEST_F(BoundedRun, WhatIsReadAfterwardsIsTheOraclesValue) {
  Move(Published(1), 1);
  EXPECT_EQ(FoundIn(CheckNumerics(mini_.run)), "");
  for (Trace& trace : mini_.run.traces) trace.bounded_updates = false;
  EXPECT_NE(FoundIn(CheckNumerics(mini_.run)), "");
}

TEST_F(BoundedRun, WithoutTheHeadersWordItIsAFinding) {
  for (Trace& trace : mini_.run.traces) trace.bounded_updates = false;
  Move(Published(2), 1);
  const CheckResult result = CheckPublished(mini_.run);
  EXPECT_EQ(FoundIn(result), "FS-24");
  EXPECT_FALSE(TellsBound(result));
}

TEST_F(BoundedRun, AHundredUnitsAreNot) {
  Move(Published(2), 100);
  EXPECT_EQ(FoundIn(CheckPublished(mini_.run)), "FS-24");
}

TEST_F(BoundedRun, NeitherIsNan) {
  Published(2) = NAN;
  EXPECT_EQ(FoundIn(CheckPublished(mini_.run)), "FS-24");
}

TEST_F(BoundedRun, WhatCreatePublishesIsExact) {
  Move(Published(0), 1);
  EXPECT_EQ(FoundIn(CheckPublished(mini_.run)), "FS-24");
}

// Two fp32 ways to take AdamW's step, this suite's and torch's (torch/optim/adam.py,
// _single_tensor_adam), in plain floats: they stay within the bound for 1,000 steps.
TEST(UpdateBound, HoldsForTwoWaysToRoundAdamW) {
  constexpr float b1 = 0.5F, b2 = 0.75F, eps = 0x1p-7F;
  unsigned state = 1;
  const auto random = [&] {
    state = state * 1664525U + 1013904223U;
    return static_cast<float>(static_cast<int>(state >> 12) - (1 << 19)) / float(1 << 19);
  };
  double nearest = 0;
  for (int run = 0; run < 200; ++run) {
    const float lr = std::ldexp(1.0F, -(run % 12)), wd = run % 3 == 0 ? 0.1F : 0;
    float w = random() * 4, m = 0, v = 0, m2 = 0, v2 = 0, p1 = 1, p2 = 1;
    for (int t = 1; t <= 50; ++t) {
      const float g = random() * std::ldexp(1.0F, (run % 9) - 4);
      p1 *= b1, p2 *= b2;
      const float c1 = 1 - p1, c2 = 1 - p2;
      m = m * b1 + g * (1 - b1);
      v = v * b2 + (g * g) * (1 - b2);
      const float ours = (w - w * (lr * wd)) - ((m / c1) / (std::sqrt(v / c2) + eps)) * lr;
      m2 = m2 + (g - m2) * (1 - b1);
      v2 = v2 * b2 + (1 - b2) * g * g;
      const auto step = static_cast<float>(double{lr} / (1 - std::pow(double{b1}, t)));
      const auto root = static_cast<float>(std::sqrt(1 - std::pow(double{b2}, t)));
      const float theirs = std::fmaf(-step, m2 / (std::sqrt(v2) / root + eps), w * (1 - lr * wd));
      const double bound = UpdateBound(w, ours, lr, t);
      nearest = std::max(nearest, std::fabs(double{ours} - theirs) / bound);
      ASSERT_LE(std::fabs(double{ours} - theirs), bound) << "run " << run << ", step " << t;
      w = ours;
    }
  }
  EXPECT_GT(nearest, 0.02) << "the bound is looser than it need be";
}

}  // namespace
}  // namespace shardproof
