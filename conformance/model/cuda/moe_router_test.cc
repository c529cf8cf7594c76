// Routers on a device against those of the host, with rules that no model's config gives.
#include "conformance/model/cuda/moe_router.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "conformance/model/cuda/late_queue.h"
#include "conformance/model/cuda/moe_rules_bench.h"

namespace shardproof {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct RoutedPair {
  Routed found, wanted;
};

RoutedPair RouteTwice(const device::Rules& rules, const RouterCase& c) {
  RoutedPair pair;
  pair.wanted = Route(NumericsOf(rules), c.rule, c.x, c.weight, c.bias);
  pair.found = {Floats(pair.wanted.probs.size(), kNaN), Indices(pair.wanted.index.size(), -9),
                std::vector<int64_t>(pair.wanted.counts.size(), -9)};
  LateQueue queue;
  device::RouterForward(queue, rules, c.rule,
                        {c.x.data(), c.weight.data(), c.bias.empty() ? nullptr : c.bias.data()},
                        pair.found.probs.data(), pair.found.index.data(), pair.found.counts.data());
  queue.Flush();
  return pair;
}

void ExpectSameRouting(const device::Rules& rules, const RouterCase& c) {
  const RoutedPair pair = RouteTwice(rules, c);
  EXPECT_TRUE(SameBits(pair.found.probs, pair.wanted.probs));
  EXPECT_EQ(pair.found.index, pair.wanted.index);
  EXPECT_EQ(pair.found.counts, pair.wanted.counts);
}

void ExpectSameGradients(const device::Rules& rules, const RouterCase& c, const Indices& index,
                         double aux_scale, int32_t dtype = SPF_F32) {
  const Numerics n = NumericsOf(rules);
  const float* bias = c.bias.empty() ? nullptr : c.bias.data();
  std::mt19937 random(4);
  const Floats dx = OnGrid(random, static_cast<int64_t>(c.x.size()), grids::kDMoeNormOut);
  const Floats dweight = OnGrid(random, static_cast<int64_t>(c.weight.size()), {-15, 20});
  Floats wanted_x = dx, found_x = dx, wanted_w = dweight, found_w = dweight;
  RouterDgrad(n, c.rule, c.x.data(), c.weight.data(), bias, index.data(), c.dprobs.data(),
              aux_scale, wanted_x.data());
  RouterWgrad(n, c.rule, c.x.data(), c.weight.data(), bias, index.data(), c.dprobs.data(),
              aux_scale, {"router", wanted_w.data(), dtype});
  LateQueue queue;
  const device::RouterOperands in{c.x.data(), c.weight.data(), bias};
  device::RouterDgrad(queue, rules, c.rule, in, index.data(), c.dprobs.data(), aux_scale,
                      found_x.data());
  device::RouterWgrad(queue, rules, c.rule, in, index.data(), c.dprobs.data(), aux_scale,
                      {found_w.data(), dtype});
  queue.Flush();
  EXPECT_TRUE(SameBits(found_x, wanted_x));
  EXPECT_TRUE(SameBits(found_w, wanted_w));
}

TEST(DeviceRouterTest, ChoosesAndWeighsAsTheHostDoes) {
  for (const RouterRule& rule : AllRoutings()) {
    RouterCase c(rule);
    ExpectSameRouting({}, c);
    c.x.assign(c.x.size(), 0);  // ties
    ExpectSameRouting({}, c);
    ExpectSameRouting({.quantised = false}, c);
    if (HasFailure()) return;
  }
}

TEST(DeviceRouterTest, TeachesWhatTheHostTeaches) {
  for (const RouterRule& rule : AllRoutings()) {
    for (const device::Rules& rules : AllRules()) {
      RouterCase c(rule);
      const float scale = PowerOfTwo(rules.scale_e);
      for (float& d : c.dprobs) d = d * scale;
      const Indices index = Route(NumericsOf(rules), rule, c.x, c.weight, c.bias).index;
      ExpectSameGradients(rules, c, index, static_cast<double>(scale));
      ExpectSameGradients(rules, c, index, 0.5, SPF_BF16);
      ExpectSameGradients(rules, c, Indices(index.size(), 0x11111111), 1);
      ExpectSameGradients(rules, c, Indices(index.size(), 8), 1);
      ExpectSameGradients(rules, c, Indices(index.size(), 3), 1);
      ExpectSameGradients(rules, c, Indices(index.size(), -5), 1);
    }
    if (HasFailure()) return;
  }
}

TEST(DeviceRouterTest, LogitsMayAllBeNegative) {
  for (const RouterRule& rule : AllRoutings()) {
    RouterCase c(rule);
    for (float& x : c.x) x = std::fabs(x) / 4;
    for (float& weight : c.weight) weight = -std::fabs(weight);
    ExpectSameRouting({}, c);
    ExpectSameGradients({}, c, Route({}, rule, c.x, c.weight, c.bias).index, 1);
  }
}

// Sigmoids that all round to zero: nothing to divide by.
TEST(DeviceRouterTest, ScoresOfZeroWeighNothing) {
  RouterRule rule = SmallRule(Score::kSigmoid, 4);
  rule.aux_loss = true;
  RouterCase c(rule);
  c.x.assign(c.x.size(), 127.0f / 32);
  c.weight.assign(c.weight.size(), -127.0f / 128);
  ExpectSameRouting({}, c);
  EXPECT_EQ(RouteTwice({}, c).found.probs, Floats(c.dprobs.size()));
  ExpectSameGradients({}, c, Route({}, rule, c.x, c.weight, c.bias).index, 1);
}

TEST(DeviceRouterTest, PoisonShowsAndLeadsNowhereElse) {
  for (const RouterRule& rule : AllRoutings()) {
    const RouterCase good(rule);
    const Indices index = Route({}, rule, good.x, good.weight, good.bias).index;
    for (int what = 0; what < 4; ++what) {
      RouterCase c(rule);
      if (what == 0) c.x.assign(c.x.size(), kNaN);
      if (what == 1) c.x[5] = kNaN;
      if (what == 2) c.weight[20] = kNaN;
      if (what == 3 && !c.bias.empty()) c.bias[3] = kNaN;
      ExpectSameRouting({}, c);
      if (what == 3 && c.bias.empty()) c.dprobs[3] = kNaN;
      ExpectSameGradients({}, c, index, 1);
    }
    if (HasFailure()) return;
  }
}

TEST(DeviceRouterTest, ARuleThatIsNoneIsRefused) {
  RouterRule rule = SmallRule(Score::kSoftmax, 2);
  const RouterCase c(rule);
  rule.groups = 3;
  LateQueue queue;
  const device::RouterOperands in{c.x.data(), c.weight.data(), nullptr};
  EXPECT_THROW(device::RouterForward(queue, {}, rule, in, nullptr, nullptr, nullptr),
               std::invalid_argument);
}

}  // namespace
}  // namespace shardproof
