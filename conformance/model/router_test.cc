// The router against a plain loop and finite differences.
#include "conformance/model/router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "conformance/model/grids.h"
#include "conformance/model/moe_bench.h"

namespace shardproof {
namespace {

// All experts of a token, the preferred first.
std::vector<int64_t> Preference(const RouterRule& rule, const Floats& keys) {
  std::vector<int64_t> order(static_cast<size_t>(rule.experts));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return keys[static_cast<size_t>(a)] > keys[static_cast<size_t>(b)];
  });
  return order;
}

class RouterTest : public testing::TestWithParam<std::tuple<Score, int64_t>> {
 protected:
  RouterRule rule_ = SmallRule(std::get<0>(GetParam()), std::get<1>(GetParam()));
};

float Numerator(float x) { return Quantise(Exp(x), grids::kNumerator); }
float Sigmoid(float x) { return Quantise(1.0f / (1.0f + Exp(-x)), grids::kScore); }

TEST_P(RouterTest, ForwardEqualsALoop) {
  const RouterCase c(rule_);
  const Routed routed = Route({}, rule_, c.x, c.weight, c.bias);
  std::vector<int64_t> counts(8);
  for (int64_t t = 0; t < rule_.tokens; ++t) {
    Floats logits, keys, terms;  // terms: what weights are fractions of
    for (int64_t e = 0; e < rule_.experts; ++e) logits.push_back(c.Logit(t, e));
    const float top = *std::max_element(logits.begin(), logits.end());
    for (size_t e = 0; e < 8; ++e) {
      terms.push_back(rule_.score == Score::kSigmoid ? Sigmoid(logits[e])
                                                     : Numerator(logits[e] - top));
      keys.push_back(rule_.score == Score::kSoftmax   ? logits[e]
                     : rule_.score == Score::kSigmoid ? terms[e] + c.bias[e]
                                                      : terms[e]);
    }
    const std::vector<int64_t> order = Preference(rule_, keys);
    const float best = logits[static_cast<size_t>(order[0])];
    float sum = 0;
    for (size_t i = 0; i < 8; ++i) {
      const auto e = static_cast<size_t>(order[i]);
      if (rule_.score == Score::kSoftmax) terms[e] = Numerator(logits[e] - best);
      const bool chosen = static_cast<int64_t>(i) < rule_.top_k;
      if (chosen || rule_.score == Score::kPreSoftmax) sum = sum + terms[e];
    }
    if (rule_.score == Score::kSigmoid && rule_.top_k == 1) sum = 1;
    for (int64_t i = 0; i < rule_.top_k; ++i) {
      const auto at = static_cast<size_t>(t * rule_.top_k + i);
      const auto e = static_cast<size_t>(order[static_cast<size_t>(i)]);
      ASSERT_EQ(routed.index[at], static_cast<int32_t>(e)) << "token " << t;
      ASSERT_EQ(routed.probs[at], Quantise(terms[e] / sum, grids::kProbability));
      ++counts[e];
    }
  }
  EXPECT_EQ(routed.counts, counts);
}

// The losses, in fp64 and with the choice held fixed, as a function of x and the weight.
double Objective(const RouterCase& c, const Floats& x, const Floats& weight, const Indices& index,
                 const std::vector<double>& counts) {
  const RouterRule& r = c.rule;
  const auto experts = static_cast<size_t>(r.experts), k = static_cast<size_t>(r.top_k);
  double total = 0;
  for (size_t t = 0; t < static_cast<size_t>(r.tokens); ++t) {
    std::vector<double> logits(experts), score(experts);
    double sum = 0, chosen_sum = 0, exp_sum = 0, balance = 0;
    for (size_t e = 0; e < experts; ++e) {
      for (size_t i = 0; i < static_cast<size_t>(r.width); ++i)
        logits[e] += static_cast<double>(x[t * static_cast<size_t>(r.width) + i]) *
                     weight[e * static_cast<size_t>(r.width) + i];
      score[e] = r.score == Score::kSigmoid ? 1 / (1 + std::exp(-logits[e])) : std::exp(logits[e]);
      sum += score[e];
      exp_sum += std::exp(logits[e]);
    }
    for (size_t i = 0; i < k; ++i) chosen_sum += score[static_cast<size_t>(index[t * k + i])];
    for (size_t i = 0; i < k; ++i) {
      double p = score[static_cast<size_t>(index[t * k + i])];
      if (r.score == Score::kPreSoftmax) p /= sum;
      if (r.score == Score::kSoftmax || (r.score == Score::kSigmoid && k > 1)) p /= chosen_sum;
      total += p * static_cast<double>(c.dprobs[t * k + i]);
    }
    for (size_t e = 0; e < experts; ++e) balance += score[e] / sum * counts[e];
    const auto tokens = static_cast<double>(r.tokens);
    total += static_cast<double>(kBalanceCoefficient) * static_cast<double>(experts) /
             (static_cast<double>(k) * tokens * tokens) * balance;
    total += static_cast<double>(kZCoefficient) / tokens * std::pow(std::log(exp_sum), 2);
  }
  return total;
}

TEST_P(RouterTest, GradientsAreThoseOfFiniteDifferences) {
  rule_.z_loss = rule_.aux_loss = true;
  Numerics n;
  n.quantised = false;
  for (int64_t capacity : {0, 1}) {
    RouterCase c(rule_);
    const Indices chosen = Route(n, rule_, c.x, c.weight, c.bias).index;
    std::vector<double> counts(8);
    for (int32_t e : chosen) counts[static_cast<size_t>(e)] += 1;
    rule_.capacity = capacity;
    const Indices kept = Route(n, rule_, c.x, c.weight, c.bias).index;
    const RouterGrads grads = RouterBackward(n, rule_, c, kept, c.dprobs, 1);
    for (size_t i = 0; i < kept.size(); ++i) {
      if (kept[i] < 0) c.dprobs[i] = 0;  // dropped, but still part of the others' division
    }
    for (bool of_x : {true, false}) {
      const Floats& grad = of_x ? grads.dx : grads.dweight;
      for (size_t i = 0; i < grad.size(); i += 3) {
        constexpr float kStep = 1.0f / 256;
        Floats x = c.x, w = c.weight;
        float& moved = of_x ? x[i] : w[i];
        moved += kStep;
        const double above = Objective(c, x, w, chosen, counts);
        moved -= 2 * kStep;
        const double below = Objective(c, x, w, chosen, counts);
        EXPECT_NEAR((above - below) / (2.0 * kStep), static_cast<double>(grad[i]),
                    2e-3 + 2e-3 * std::fabs(static_cast<double>(grad[i])))
            << (of_x ? "x " : "weight ") << i << ", capacity " << capacity;
      }
    }
  }
}

TEST_P(RouterTest, TheScaleOfTheAuxiliaryLossesShows) {
  rule_.aux_loss = rule_.z_loss = true;
  const RouterCase c(rule_);
  Numerics n;
  const Indices index = Route(n, rule_, c.x, c.weight, c.bias).index;
  const RouterGrads right = RouterBackward(n, rule_, c, index, c.dprobs, 1);
  const RouterGrads half = RouterBackward(n, rule_, c, index, c.dprobs, 0.5);
  EXPECT_NE(right.dx, half.dx);
  EXPECT_NE(right.dweight, half.dweight);
}

INSTANTIATE_TEST_SUITE_P(Scores, RouterTest,
                         testing::Combine(testing::Values(Score::kSoftmax, Score::kPreSoftmax,
                                                          Score::kSigmoid),
                                          testing::Values<int64_t>(1, 2, 4)));

}  // namespace
}  // namespace shardproof
