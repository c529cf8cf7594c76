// Which experts are chosen, which choices are dropped, and what poison or a bad rule does.
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "conformance/model/grids.h"
#include "conformance/model/moe_bench.h"
#include "conformance/model/router.h"

namespace shardproof {
namespace {

RouterRule OneToken(int64_t width, int64_t experts, int64_t k) {
  RouterRule rule;
  rule.tokens = 1;
  rule.width = width;
  rule.experts = experts;
  rule.top_k = k;
  return rule;
}

TEST(RouterChoiceTest, TiesGoToTheLowerExpert) {
  const RouterRule rule = SmallRule(Score::kSoftmax, 2);
  EXPECT_EQ(ChooseExperts(OneToken(1, 4, 3), {1, 2, 2, 1}), (Indices{1, 2, 0}));
  const Routed r = Route({}, rule, Floats(8 * 16), Floats(8 * 16), {});
  for (size_t i = 0; i < r.index.size(); ++i) {
    EXPECT_EQ(r.index[i], static_cast<int32_t>(i % 2));
    EXPECT_EQ(r.probs[i], 0.5f);
  }
}

TEST(RouterChoiceTest, GroupsCountAsMuchAsTheirBestExperts) {
  RouterRule rule = OneToken(1, 8, 4);
  rule.groups = 4;
  rule.top_groups = 2;
  // Sums of the two best: 9, 8, 10, 1. The largest key of all is in a group that loses.
  EXPECT_EQ(ChooseExperts(rule, {4, 5, 8, 0, 6, 4, 1, 0}), (Indices{4, 1, 0, 5}));
  rule.top_groups = 4;  // a group counts as much as its best one; no group is left out
  EXPECT_EQ(ChooseExperts(rule, {4, 5, 8, 0, 6, 4, 1, 0}), (Indices{2, 4, 1, 0}));
}

TEST(RouterChoiceTest, ABiasChangesTheChoiceAndNotTheWeight) {
  const RouterRule rule = SmallRule(Score::kSigmoid, 8);
  const RouterCase c(rule);
  const Routed plain = Route({}, rule, c.x, c.weight, Floats(8));
  const Routed biased = Route({}, rule, c.x, c.weight, c.bias);
  EXPECT_NE(plain.index, biased.index);
  for (size_t t = 0; t < 8; ++t) {
    Floats a(8), b(8);
    for (size_t i = 0; i < 8; ++i) {
      a[static_cast<size_t>(plain.index[t * 8 + i])] = plain.probs[t * 8 + i];
      b[static_cast<size_t>(biased.index[t * 8 + i])] = biased.probs[t * 8 + i];
    }
    EXPECT_EQ(a, b);
  }
}

TEST(RouterChoiceTest, SelectionSkewsEveryScore) {
  for (Score score : {Score::kSoftmax, Score::kPreSoftmax, Score::kSigmoid}) {
    RouterRule rule = SmallRule(score, 2);
    const RouterCase c(rule);
    rule.selection = {512, 512, 0, 0, 0, 0, 0, 0};
    EXPECT_EQ(Route({}, rule, c.x, c.weight, c.bias).counts,
              (std::vector<int64_t>{8, 8, 0, 0, 0, 0, 0, 0}));
    rule.selection = {0, 0, 0, 0, 0, 0, 0, -512};
    EXPECT_EQ(Route({}, rule, c.x, c.weight, c.bias).counts[7], 0);
  }
}

TEST(RouterCapacityTest, LaterTokensAreDroppedFirst) {
  RouterRule rule = SmallRule(Score::kSoftmax, 2);
  rule.selection = {512, 512, 0, 0, 0, 0, 0, 0};
  const RouterCase c(rule);
  rule.capacity = 3;
  Routed r = Route({}, rule, c.x, c.weight, {});
  EXPECT_EQ(r.counts, (std::vector<int64_t>{3, 3, 0, 0, 0, 0, 0, 0}));
  for (size_t i = 0; i < r.index.size(); ++i) {
    EXPECT_EQ(r.index[i] < 0, i >= 6);
    EXPECT_EQ(r.probs[i] == 0, i >= 6);
  }
  rule.pad = true;
  EXPECT_EQ(Route({}, rule, c.x, c.weight, {}).counts, std::vector<int64_t>(8, 3));
  rule.capacity = 50;  // an expert has at most one row a token
  EXPECT_EQ(Route({}, rule, c.x, c.weight, {}).counts, std::vector<int64_t>(8, 8));
  EXPECT_EQ(ExpertCapacity(8, 2, 8, 125), 3);
  EXPECT_EQ(ExpertCapacity(8, 2, 4, 1000), 8);
  EXPECT_EQ(ExpertCapacity(8, 2, 8, 0), 0);
}

// Two halves of the tokens, each with its own capacity and auxiliary losses, as two routers.
TEST(RouterPartsTest, PartsAreRoutedEachByItself) {
  for (Score score : {Score::kSoftmax, Score::kPreSoftmax, Score::kSigmoid}) {
    RouterRule rule = SmallRule(score, 2);
    rule.capacity = 2;
    rule.aux_loss = rule.z_loss = true;
    rule.parts = 2;
    const RouterCase c(rule);
    const Routed both = Route({}, rule, c.x, c.weight, c.bias);
    const RouterGrads grads = RouterBackward({}, rule, c, both.index, c.dprobs, 1);
    RouterRule half = rule;
    half.parts = 1;
    half.tokens = rule.tokens / 2;
    Routed joined;
    RouterGrads sum;
    joined.counts.resize(both.counts.size());
    sum.dweight.resize(grads.dweight.size());
    for (const size_t part : {0, 1}) {
      const auto cut = [&](const Floats& all) {
        const auto n = static_cast<std::ptrdiff_t>(all.size() / 2), at = n * (part == 0 ? 0 : 1);
        return Floats(all.begin() + at, all.begin() + at + n);
      };
      RouterCase mine(half);
      mine.x = cut(c.x), mine.dprobs = cut(c.dprobs), mine.weight = c.weight, mine.bias = c.bias;
      const Routed r = Route({}, half, mine.x, c.weight, c.bias);
      joined.probs.insert(joined.probs.end(), r.probs.begin(), r.probs.end());
      joined.index.insert(joined.index.end(), r.index.begin(), r.index.end());
      for (size_t e = 0; e < r.counts.size(); ++e) joined.counts[e] += r.counts[e];
      const RouterGrads g = RouterBackward({}, half, mine, r.index, mine.dprobs, 1);
      sum.dx.insert(sum.dx.end(), g.dx.begin(), g.dx.end());
      for (size_t i = 0; i < g.dweight.size(); ++i) sum.dweight[i] += g.dweight[i];
    }
    EXPECT_EQ(both.probs, joined.probs);
    EXPECT_EQ(both.index, joined.index);
    EXPECT_EQ(both.counts, joined.counts);
    EXPECT_EQ(grads.dx, sum.dx);
    EXPECT_EQ(grads.dweight, sum.dweight);
    rule.parts = 1;  // and not as one
    EXPECT_NE(RouterBackward({}, rule, c, both.index, c.dprobs, 1).dweight, grads.dweight);
    rule.pad = true;
    rule.parts = 2;
    EXPECT_EQ(Route({}, rule, c.x, c.weight, c.bias).counts, std::vector<int64_t>(8, 4));
    EXPECT_EQ(rule.rows_per_expert(), 4);
  }
}

// A dropped choice still normalises the others; its own gradient is none.
TEST(RouterCapacityTest, DroppedChoicesGetNoGradient) {
  RouterRule rule = SmallRule(Score::kSoftmax, 2);
  rule.capacity = 1;
  const RouterCase c(rule);
  const Routed r = Route({}, rule, c.x, c.weight, {});
  Floats other = c.dprobs;
  size_t dropped = 0;
  for (size_t i = 0; i < other.size(); ++i) {
    if (r.index[i] < 0) other[i] = 1, ++dropped;
  }
  EXPECT_GT(dropped, 4u);
  EXPECT_EQ(RouterBackward({}, rule, c, r.index, c.dprobs, 1).dweight,
            RouterBackward({}, rule, c, r.index, other, 1).dweight);
}

TEST(RouterPoisonTest, NansShowAndLeadNowhereElse) {
  for (Score score : {Score::kSoftmax, Score::kPreSoftmax, Score::kSigmoid}) {
    const RouterRule rule = SmallRule(score, 2);
    const RouterCase c(rule);
    const Floats nan(8 * 16, std::numeric_limits<float>::quiet_NaN());
    const Routed r = Route({}, rule, nan, c.weight, c.bias);
    for (size_t i = 0; i < r.index.size(); ++i) {
      EXPECT_TRUE(r.index[i] >= 0 && r.index[i] < 8);
      EXPECT_NE(r.probs[i], r.probs[i]);
    }
    const Indices garbage(16, 0x11111111);
    const RouterGrads g = RouterBackward({}, rule, c, garbage, c.dprobs, 1);
    EXPECT_NE(g.dweight,
              RouterBackward({}, rule, c, Route({}, rule, c.x, c.weight, c.bias).index, c.dprobs, 1)
                  .dweight);
  }
}

TEST(RouterRuleTest, BadFieldsAreNamed) {
  auto message = [](RouterRule rule) {
    try {
      RequireValid(rule);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const RouterRule good = SmallRule(Score::kSoftmax, 2);
  EXPECT_EQ(message(good), "");
  RouterRule bad = good;
  bad.top_k = 9;
  EXPECT_NE(message(bad).find("top_k is 9"), std::string::npos);
  bad = good;
  bad.parts = 3;
  EXPECT_NE(message(bad).find("parts is 3"), std::string::npos);
  bad = good;
  bad.groups = 3;
  EXPECT_NE(message(bad).find("groups is 3"), std::string::npos);
  bad = good;
  bad.pad = true;
  EXPECT_NE(message(bad).find("capacity is 0"), std::string::npos);
  bad = good;
  bad.selection = {1};
  EXPECT_NE(message(bad).find("selection has 1"), std::string::npos);
}

TEST(RouterProbeTest, ASumThatIsTooLongIsNamed) {
  RouterRule rule = OneToken(1100, 2, 1);
  Numerics n;
  Probe probe;
  probe.check_bounds = true;
  n.probe = &probe;
  EXPECT_THROW(Route(n, rule, Floats(1100, 127.0f / 32), Floats(2200, 127.0f / 128), {}),
               std::logic_error);
  rule.width = 1000;
  EXPECT_NO_THROW(Route(n, rule, Floats(1000, 127.0f / 32), Floats(2000, 127.0f / 128), {}));
}

}  // namespace
}  // namespace shardproof
