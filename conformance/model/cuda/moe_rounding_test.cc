// Are the operations of routed experts between sums the host's, in the host's order? A quantiser
// hides most differences in the last bit, so there is none here; numbers are off every grid, and
// matrix products have two terms at most, so that both sides add alike.
#include <gtest/gtest.h>

#include "conformance/model/cuda/late_queue.h"
#include "conformance/model/cuda/moe_grouped.h"
#include "conformance/model/cuda/moe_permute.h"
#include "conformance/model/cuda/moe_router.h"
#include "conformance/model/cuda/moe_rules_bench.h"

namespace shardproof {
namespace {

constexpr device::Rules kRules{.quantised = false, .narrow = false, .d_odd = 3, .scale_e = 0};

// Of two tokens, and of three: divisors that are no power of two.
std::vector<RouterRule> Rules() {
  std::vector<RouterRule> rules = AllRoutings();
  for (Score score : {Score::kSoftmax, Score::kPreSoftmax, Score::kSigmoid}) {
    for (int64_t k : {1, 2}) {
      RouterRule rule = SmallRule(score, k);
      rule.experts = 2;
      rule.z_loss = rule.aux_loss = true;
      rules.push_back(rule);
    }
  }
  for (RouterRule& rule : rules) rule.tokens = rule.width = 2;
  RouterRule odd = rules.back();
  odd.experts = 6;
  odd.top_k = odd.tokens = 3;
  for (Score score : {Score::kSoftmax, Score::kPreSoftmax, Score::kSigmoid}) {
    odd.score = score;
    rules.push_back(odd);
  }
  return rules;
}

RouterCase OffGrid(const RouterRule& rule, uint32_t seed) {
  RouterCase c(rule);
  c.random.seed(seed);
  for (Floats* values : {&c.x, &c.weight, &c.bias, &c.dprobs})
    *values = Normal(c.random, static_cast<int64_t>(values->size()));
  for (size_t t = 2; t < static_cast<size_t>(rule.tokens); ++t) c.x[2 * t] = c.x[2 * t + 1] = 0;
  return c;
}

void ExpectSameRouter(RouterCase& c, double aux_scale) {
  const Numerics n = NumericsOf(kRules);
  const float* bias = c.bias.empty() ? nullptr : c.bias.data();
  const device::RouterOperands in{c.x.data(), c.weight.data(), bias};
  const Routed wanted = Route(n, c.rule, c.x, c.weight, c.bias);
  Routed found{Floats(wanted.probs.size()), Indices(wanted.index.size()), wanted.counts};
  Floats wanted_x = Normal(c.random, static_cast<int64_t>(c.x.size())), found_x = wanted_x;
  Floats wanted_w = Normal(c.random, static_cast<int64_t>(c.weight.size())), found_w = wanted_w;
  RouterDgrad(n, c.rule, c.x.data(), c.weight.data(), bias, wanted.index.data(), c.dprobs.data(),
              aux_scale, wanted_x.data());
  RouterWgrad(n, c.rule, c.x.data(), c.weight.data(), bias, wanted.index.data(), c.dprobs.data(),
              aux_scale, {"router", wanted_w.data(), SPF_F32});
  LateQueue queue;
  device::RouterForward(queue, kRules, c.rule, in, found.probs.data(), found.index.data(), nullptr);
  device::RouterDgrad(queue, kRules, c.rule, in, wanted.index.data(), c.dprobs.data(), aux_scale,
                      found_x.data());
  device::RouterWgrad(queue, kRules, c.rule, in, wanted.index.data(), c.dprobs.data(), aux_scale,
                      {found_w.data(), SPF_F32});
  queue.Flush();
  EXPECT_TRUE(SameBits(found.probs, wanted.probs));
  EXPECT_EQ(found.index, wanted.index);
  EXPECT_TRUE(SameBits(found_w, wanted_w));
  EXPECT_TRUE(c.rule.experts > 2 || SameBits(found_x, wanted_x));
}

TEST(MoeRoundingTest, Routers) {
  for (const RouterRule& rule : Rules()) {
    for (uint32_t seed = 0; seed < 10; ++seed) {
      RouterCase c = OffGrid(rule, seed);
      ExpectSameRouter(c, 0.7 + 0.13 * seed);
    }
    if (HasFailure()) return;
  }
}

TEST(MoeRoundingTest, Permutation) {
  const RouterRule rule = SmallRule(Score::kSoftmax, 2);
  const Numerics n = NumericsOf(kRules);
  RouterCase c = OffGrid(rule, 1);
  const Routed r = Route(n, rule, c.x, c.weight, c.bias);
  const Floats rows = Normal(c.random, 16 * 16), probs = Normal(c.random, 16),
               shared = Normal(c.random, 128);
  Floats wanted = Normal(c.random, 128), found = wanted, wanted_probs(16), found_probs(16),
         wanted_out(128), found_out(128);
  PermuteDgrad(n, rule, 16, r.index.data(), rows.data(), probs.data(), wanted.data(),
               wanted_probs.data());
  UnpermuteForward(n, rule, 16, rows.data(), r.index.data(), shared.data(), c.x.data(),
                   wanted_out.data());
  LateQueue queue;
  device::PermuteDgrad(queue, rule, 16, r.index.data(), rows.data(), probs.data(), found.data(),
                       found_probs.data());
  device::UnpermuteForward(queue, kRules, rule, 16, rows.data(), r.index.data(), shared.data(),
                           c.x.data(), found_out.data());
  queue.Flush();
  EXPECT_TRUE(SameBits(found, wanted));
  EXPECT_TRUE(SameBits(found_probs, wanted_probs));
  EXPECT_TRUE(SameBits(found_out, wanted_out));
}

// 2 ranks, 2 experts of 2 inputs and 2 outputs, at most 2 rows from a rank.
TEST(MoeRoundingTest, Grouped) {
  const Numerics n = NumericsOf(kRules);
  const std::vector<int64_t> counts{2, 1, 1, 2};
  const ExpertRows rows{2, 2, counts.data(), 0};
  std::mt19937 random(3);
  const Floats x = Normal(random, 12), dy = Normal(random, 12), w = Normal(random, 8),
               b = Normal(random, 4);
  Floats wanted_y(12), found_y(12), wanted_dx(12), found_dx(12);
  Floats wanted_dw = Normal(random, 8), found_dw = wanted_dw, wanted_db = Normal(random, 4),
         found_db = wanted_db;
  const std::vector<const float*> weights{w.data(), w.data() + 4}, biases{b.data(), b.data() + 2};
  GroupedForward(n, rows, 2, 2, x.data(), weights, biases, grids::kActivation, wanted_y.data());
  GroupedDgrad(n, rows, 2, 2, dy.data(), grids::kDBranch, weights, grids::kDExpertAct,
               wanted_dx.data());
  GroupedWgrad(n, rows, 2, 2, x.data(), dy.data(), grids::kDBranch,
               {{"", wanted_dw.data(), SPF_F32}, {"", wanted_dw.data() + 4, SPF_F32}},
               {{"", wanted_db.data(), SPF_F32}, {"", wanted_db.data() + 2, SPF_F32}});
  LateQueue queue;
  {
    const device::RowsByExpert by_expert(queue, rows, 6);
    device::GroupedForward(queue, kRules, by_expert, {2, 2}, x.data(), w.data(), b.data(),
                           grids::kActivation, found_y.data());
    device::GroupedDgrad(queue, kRules, by_expert, {2, 2}, dy.data(), w.data(), grids::kDExpertAct,
                         found_dx.data());
    device::GroupedWgrad(queue, kRules, by_expert, {2, 2}, x.data(), dy.data(), grids::kDBranch,
                         {{found_dw.data(), SPF_F32}, {found_dw.data() + 4, SPF_F32}},
                         {{found_db.data(), SPF_F32}, {found_db.data() + 2, SPF_F32}});
  }
  queue.Flush();
  EXPECT_TRUE(SameBits(found_y, wanted_y));
  EXPECT_TRUE(SameBits(found_dx, wanted_dx));
  EXPECT_TRUE(SameBits(found_dw, wanted_dw));
  EXPECT_TRUE(SameBits(found_db, wanted_db));
}

TEST(MoeRoundingTest, GatedSwiglu) {
  constexpr int64_t kFfn = 20, kRows = 30;  // reduce.h adds as many as it has parts in their order
  std::mt19937 random(4);
  const Floats x = Normal(random, kRows * 2 * kFfn), dy = Normal(random, kRows * kFfn),
               probs = Normal(random, kRows);
  ExpectSwigluOfTheHost(kRules, kRows, kFfn, x, dy, probs);
}

}  // namespace
}  // namespace shardproof
