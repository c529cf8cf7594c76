// Does it matter on how many ranks the experts live, and which samples meet there? No bit may
// differ.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "conformance/model/grids.h"
#include "conformance/model/moe_bench.h"

namespace shardproof {
namespace {

constexpr size_t kSamples = 8;

struct Bench {
  std::mt19937 random;
  MoeLayer layer;
  std::vector<MoeSample> samples;
  std::vector<size_t> order;

  Bench(const RouterRule& rule, bool biases, uint32_t seed)
      : random(seed), layer(RandomLayer(rule, 24, biases, random)), order(kSamples) {
    for (size_t i = 0; i < kSamples; ++i) samples.push_back(RandomSample(rule, random));
    std::iota(order.begin(), order.end(), 0);
  }
  // One process, sample after sample.
  MoeResult Alone(const Numerics& n) const { return RunMoe(n, layer, samples, order, 1); }
  MoeResult On(const Numerics& n, int64_t ranks) {
    std::vector<size_t> shuffled = order;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    return RunMoe(n, layer, samples, shuffled, ranks);
  }
};

bool AnyNonZero(const Floats& values) {
  return std::any_of(values.begin(), values.end(), [](float v) { return v != 0; });
}

std::vector<RouterRule> Rules() {
  std::vector<RouterRule> rules;
  for (Score score : {Score::kSoftmax, Score::kPreSoftmax, Score::kSigmoid}) {
    for (int64_t k : {1, 2}) rules.push_back(SmallRule(score, k));
  }
  RouterRule all = SmallRule(Score::kSigmoid, 4);
  all.groups = 4;
  all.top_groups = 2;
  all.z_loss = all.aux_loss = true;
  rules.push_back(all);
  RouterRule drop = SmallRule();
  drop.aux_loss = true;
  drop.capacity = 2;
  rules.push_back(drop);
  drop.pad = true;
  rules.push_back(drop);
  drop.capacity = 100;
  rules.push_back(drop);
  RouterRule one = SmallRule();  // all rows to one rank; most experts get none
  one.selection = {512, 512, 0, 0, 0, 0, 0, 0};
  rules.push_back(one);
  RouterRule empty = SmallRule();
  empty.selection = {0, 0, 0, 0, 0, 0, -512, -512};
  rules.push_back(empty);
  return rules;
}

class RegroupTest : public testing::TestWithParam<size_t> {
 protected:
  RouterRule rule_ = Rules()[GetParam()];
};

TEST_P(RegroupTest, AnyNumberOfRanksGivesTheSameBits) {
  Numerics n;
  n.d_odd = 3;
  Probe probe;
  probe.check_bounds = true;
  n.probe = &probe;
  Bench bench(rule_, true, 5);
  const MoeResult alone = bench.Alone(n);
  EXPECT_TRUE(AnyNonZero(alone.out[0]) && AnyNonZero(alone.dx[0]) && AnyNonZero(alone.fc1[0]));
  for (int64_t ranks : {1, 2, 4, 8}) {
    probe.NextStep();
    EXPECT_TRUE(alone == bench.On(n, ranks)) << ranks << " ranks";
  }
  EXPECT_GT(probe.largest, 1000);
}

TEST_P(RegroupTest, TheSameHoldsForTernaryGradientsUnderALossScale) {
  Numerics n;
  n.narrow = true;
  n.scale_e = -4;
  Bench bench(rule_, false, 6);
  const MoeResult alone = bench.Alone(n);
  for (int64_t ranks : {2, 8}) EXPECT_TRUE(alone == bench.On(n, ranks)) << ranks << " ranks";
}

INSTANTIATE_TEST_SUITE_P(Rules, RegroupTest, testing::Range<size_t>(0, 12));

TEST(RegroupControlTest, WithoutQuantisersTheGroupingShows) {
  Numerics n;
  n.quantised = false;
  Bench bench(SmallRule(), false, 7);
  for (MoeSample& sample : bench.samples) sample.x = Normal(bench.random, 8 * 16);
  const MoeResult alone = bench.Alone(n);
  bool differs = false;
  for (int64_t ranks : {1, 2, 4, 8}) differs |= !(alone == bench.On(n, ranks));
  EXPECT_TRUE(differs);
}

TEST(RegroupRandomTest, RandomRulesRegroup) {
  std::mt19937 random(2024);
  auto pick = [&](std::initializer_list<int64_t> of) {
    return *(of.begin() + std::uniform_int_distribution<int64_t>(
                              0, static_cast<int64_t>(of.size()) - 1)(random));
  };
  for (uint32_t round = 0; round < 40; ++round) {
    RouterRule rule = SmallRule(static_cast<Score>(pick({0, 1, 2})), pick({1, 2, 4}));
    rule.tokens = pick({1, 3, 8, 13});
    rule.width = pick({5, 16, 29});
    rule.groups = static_cast<int32_t>(pick({1, 2}));
    rule.top_groups = rule.top_k >= 2 ? static_cast<int32_t>(pick({1, rule.groups})) : 1;
    rule.z_loss = pick({0, 1}) == 1;
    rule.aux_loss = pick({0, 1}) == 1;
    rule.capacity = ExpertCapacity(rule.tokens, rule.top_k, rule.experts, pick({0, 50, 125}));
    rule.pad = rule.capacity > 0 && pick({0, 1}) == 1;
    Bench bench(rule, pick({0, 1}) == 1, round);
    Probe probe;
    probe.check_bounds = true;
    Numerics n;
    n.probe = &probe;
    const MoeResult alone = bench.Alone(n);
    probe.NextStep();
    EXPECT_TRUE(alone == bench.On(n, pick({2, 4, 8}))) << "round " << round;
  }
}

TEST(RegroupScaleTest, ALossScaleScalesAllGradientsExactly) {
  RouterRule rule = SmallRule();
  rule.z_loss = rule.aux_loss = true;
  Bench bench(rule, false, 8);
  Numerics n;
  const MoeResult plain = bench.Alone(n);
  for (MoeSample& sample : bench.samples) {
    for (float& d : sample.dout) d = d / 16;
  }
  n.scale_e = -4;
  MoeResult scaled = bench.Alone(n);
  for (auto* grads :
       {&scaled.dx, &scaled.dprobs, &scaled.dshared, &scaled.dresidual, &scaled.fc1, &scaled.fc2})
    for (Floats& grad : *grads)
      for (float& d : grad) d = d * 16;
  for (float& d : scaled.router) d = d * 16;
  EXPECT_TRUE(plain == scaled);
}

TEST(RegroupTokensTest, AnExpertWithoutRowsGetsAZeroGradient) {
  RouterRule rule = SmallRule();
  rule.selection = {512, 512, 0, 0, 0, 0, 0, 0};
  Bench bench(rule, true, 9);
  const MoeResult result = bench.On(Numerics{}, 4);
  for (size_t e = 0; e < 8; ++e) {
    EXPECT_EQ(AnyNonZero(result.fc1[e]), e < 2) << e;
    EXPECT_EQ(AnyNonZero(result.fc2_bias[e]), e < 2) << e;
  }
  for (const Floats& out : result.out)
    for (float v : out) EXPECT_EQ(v, v);
}

}  // namespace
}  // namespace shardproof
