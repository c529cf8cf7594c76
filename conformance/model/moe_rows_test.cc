// Permutation, grouped experts and their activation: against plain loops, finite differences, and
// at their edges.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <stdexcept>

#include "conformance/abi/shardproof.h"
#include "conformance/model/grids.h"
#include "conformance/model/moe_bench.h"

namespace shardproof {
namespace {

Numerics Checked(Probe& probe) {
  probe.check_bounds = true;
  Numerics n;
  n.probe = &probe;
  return n;
}

// Every kept choice has a row of its own that holds its token and its probability.
TEST(PermuteTest, TokensAreConserved) {
  for (int64_t capacity : {0, 2, 5}) {
    for (bool pad : {false, true}) {
      if (pad && capacity == 0) continue;
      RouterRule rule = SmallRule();
      rule.capacity = capacity;
      rule.pad = pad;
      const RouterCase c(rule);
      const Routed r = Route({}, rule, c.x, c.weight, c.bias);
      int64_t n_rows = 0;
      for (int64_t count : r.counts) n_rows += count;
      const auto width = static_cast<size_t>(rule.width), count = static_cast<size_t>(n_rows);
      Floats rows(count * width, 7), probs(count, 7);
      PermuteForward(rule, n_rows, c.x.data(), r.probs.data(), r.index.data(), rows.data(),
                     probs.data());
      const std::vector<int64_t> row_of = RowsOfChoices(rule, r.index.data(), n_rows);
      std::set<int64_t> used;
      for (size_t i = 0; i < row_of.size(); ++i) {
        EXPECT_EQ(row_of[i] < 0, r.index[i] < 0);
        if (row_of[i] < 0) continue;
        const auto row = static_cast<size_t>(row_of[i]);
        EXPECT_TRUE(used.insert(row_of[i]).second);
        EXPECT_EQ(probs[row], r.probs[i]);
        EXPECT_EQ(Floats(&rows[row * width], &rows[row * width] + width),
                  Floats(&c.x[i / 2 * width], &c.x[i / 2 * width] + width));
      }
      EXPECT_EQ(used.size() == count, !pad || capacity == 0);
      for (size_t row = 0; row < count; ++row) {
        if (used.count(static_cast<int64_t>(row)) != 0) continue;
        EXPECT_EQ(probs[row], 0);
        EXPECT_EQ(Floats(&rows[row * width], &rows[row * width] + width), Floats(width));
      }
    }
  }
}

TEST(PermuteTest, RowsLieByExpertThenToken) {
  RouterRule rule = SmallRule();
  rule.tokens = 3;
  rule.experts = 3;
  const Indices index{2, 0, 0, 1, 2, -1};
  EXPECT_EQ(RowsOfChoices(rule, index.data(), 5), (std::vector<int64_t>{3, 0, 1, 2, 4, -1}));
  rule.capacity = 2;
  rule.pad = true;
  EXPECT_EQ(RowsOfChoices(rule, index.data(), 6), (std::vector<int64_t>{4, 0, 1, 2, 5, -1}));
}

// An index that belongs to other counts, or to nothing, leads nowhere outside.
TEST(PermuteTest, AStaleIndexStaysInside) {
  const RouterRule rule = SmallRule();
  Indices index(16, 3);
  index[0] = 0x11111111;
  index[1] = -7;
  const std::vector<int64_t> rows = RowsOfChoices(rule, index.data(), 5);
  for (size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(rows[i], i >= 2 && i < 7 ? static_cast<int64_t>(i) - 2 : -1);
  RouterRule padded = rule;
  padded.capacity = 2;
  padded.pad = true;
  const std::vector<int64_t> few = RowsOfChoices(padded, index.data(), 16);
  EXPECT_EQ(few[3], 7);
  EXPECT_EQ(few[4], -1);  // not the next expert's row
}

// Experts that do nothing, weights of one half: what goes in comes out.
TEST(UnpermuteTest, IdentityExpertsGiveTheInput) {
  const RouterRule rule = SmallRule();
  RouterCase c(rule);
  for (float& x : c.x) x = 2 * Quantise(x / 2, grids::kActivation);
  const Routed r = Route({}, rule, c.x, Floats(8 * 16), {});
  Floats rows(16 * 16), probs(16), out(8 * 16);
  PermuteForward(rule, 16, c.x.data(), r.probs.data(), r.index.data(), rows.data(), probs.data());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = rows[i] * probs[i / 16];
  Probe probe;
  UnpermuteForward(Checked(probe), rule, 16, rows.data(), r.index.data(), nullptr,
                   Floats(8 * 16).data(), out.data());
  EXPECT_EQ(out, c.x);
}

TEST(UnpermuteTest, TheResidualStreamIsClamped) {
  const RouterRule rule = SmallRule();
  const Indices index(16, 0);
  const float largest = 511.0f / 32;
  Floats out(128);
  UnpermuteForward({}, rule, 16, Floats(256, 1).data(), index.data(), nullptr,
                   Floats(128, largest).data(), out.data());
  EXPECT_EQ(out, Floats(128, largest));
}

// <out, dout> = <in, din> for linear maps.
TEST(UnpermuteTest, GradientsAreTransposes) {
  RouterRule rule = SmallRule();
  rule.capacity = 1;  // drops some
  const RouterCase c(rule);
  const Routed r = Route({}, rule, c.x, c.weight, c.bias);
  int64_t n_rows = 0;
  for (int64_t count : r.counts) n_rows += count;
  std::mt19937 random(3);
  Numerics n;
  n.quantised = false;
  const Floats rows = Normal(random, n_rows * 16), drows = Normal(random, n_rows * 16),
               row_probs = Normal(random, n_rows), dout = Normal(random, 128);
  Floats permuted(rows.size()), permuted_probs(row_probs.size()), dx(128), dprobs(16), out(128),
      back(rows.size()), dshared(128), dresidual(128, 1);
  PermuteForward(rule, n_rows, c.x.data(), r.probs.data(), r.index.data(), permuted.data(),
                 permuted_probs.data());
  PermuteDgrad(n, rule, n_rows, r.index.data(), drows.data(), row_probs.data(), dx.data(),
               dprobs.data());
  auto dot = [](const Floats& a, const Floats& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
    return sum;
  };
  EXPECT_NEAR(dot(permuted, drows), dot(c.x, dx), 1e-3);
  EXPECT_NEAR(dot(permuted_probs, row_probs), dot(r.probs, dprobs), 1e-3);
  for (size_t i = 0; i < dprobs.size(); ++i) EXPECT_EQ(dprobs[i] == 0, r.index[i] < 0);
  UnpermuteForward(n, rule, n_rows, rows.data(), r.index.data(), nullptr, Floats(128).data(),
                   out.data());
  UnpermuteDgrad(n, rule, n_rows, r.index.data(), dout.data(), back.data(), dshared.data(),
                 dresidual.data(), true);
  EXPECT_NEAR(dot(out, dout), dot(rows, back), 1e-3);
  EXPECT_EQ(dshared, dout);
  for (size_t i = 0; i < dout.size(); ++i) EXPECT_EQ(dresidual[i], 1 + dout[i]);
}

TEST(GroupedTest, EqualsALoopOverRows) {
  std::mt19937 random(5);
  const std::vector<int64_t> counts{2, 0, 3, 0, 0, 4, 1, 0, 0};  // 3 ranks, 3 experts
  const ExpertRows rows{3, 3, counts.data(), 0};
  EXPECT_TRUE(rows.Fits(10));
  const std::vector<int32_t> expert = rows.ExpertOfRow();
  EXPECT_EQ(expert, (std::vector<int32_t>{0, 0, 2, 2, 2, 2, 2, 2, 2, 0}));
  const Floats x = OnGrid(random, 10 * 5, grids::kActivation),
               w0 = OnGrid(random, 35, grids::kWeight), w1 = OnGrid(random, 35, grids::kWeight),
               w2 = OnGrid(random, 35, grids::kWeight), bias = OnGrid(random, 7, grids::kWeight),
               dy = OnGrid(random, 70, grids::kDBranch);
  const std::vector<const float*> w{w0.data(), w1.data(), w2.data()}, b(3, bias.data());
  Floats y(70), dx(50), loop_dw0(35), loop_db0(7);
  std::vector<Floats> dw(3, Floats(35)), db(3, Floats(7));
  const Numerics n;
  GroupedForward(n, rows, 5, 7, x.data(), w, b, grids::kActivation, y.data());
  GroupedDgrad(n, rows, 5, 7, dy.data(), grids::kDBranch, w, grids::kDExpertAct, dx.data());
  std::vector<GradTarget> to_w, to_b;
  for (size_t e = 0; e < 3; ++e) {
    to_w.push_back({"w", dw[e].data(), SPF_F32});
    to_b.push_back({"b", db[e].data(), SPF_F32});
  }
  GroupedWgrad(n, rows, 5, 7, x.data(), dy.data(), grids::kDBranch, to_w, to_b);
  for (size_t r = 10; r-- > 0;) {
    const float* weight = w[static_cast<size_t>(expert[r])];
    Floats d(5);
    for (size_t o = 0; o < 7; ++o) {
      float sum = bias[o];
      for (size_t i = 0; i < 5; ++i) {
        sum = sum + weight[o * 5 + i] * x[r * 5 + i];
        d[i] = d[i] + weight[o * 5 + i] * dy[r * 7 + o];
        if (expert[r] == 0) loop_dw0[o * 5 + i] += x[r * 5 + i] * dy[r * 7 + o];
      }
      if (expert[r] == 0) loop_db0[o] += dy[r * 7 + o];
      EXPECT_EQ(y[r * 7 + o], Quantise(sum, grids::kActivation));
    }
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(dx[r * 5 + i], Quantise(d[i], grids::kDExpertAct));
  }
  EXPECT_EQ(dw[0], loop_dw0);
  EXPECT_EQ(db[0], loop_db0);
  EXPECT_EQ(dw[1], Floats(35));  // no rows: zero
  EXPECT_NE(dw[2], Floats(35));
}

TEST(GroupedTest, CountsOfOtherRowsDoNotFit) {
  std::vector<int64_t> counts{2, 3};
  const ExpertRows rows{1, 2, counts.data(), 0};
  EXPECT_TRUE(rows.Fits(5));
  EXPECT_FALSE(rows.Fits(6));
  EXPECT_FALSE(rows.Fits(4));
  counts = {-1, 6};
  EXPECT_FALSE(rows.Fits(5));
  counts = {INT64_MAX, INT64_MAX};
  EXPECT_FALSE(rows.Fits(5));
  EXPECT_TRUE((ExpertRows{2, 2, nullptr, 3}).Fits(12));
  EXPECT_TRUE((ExpertRows{1, 0, nullptr, 0}).Fits(0));
}

TEST(GatedSwigluTest, EqualsALoop) {
  std::mt19937 random(6);
  const Floats x = OnGrid(random, 4 * 10, grids::kActivation),
               dy = OnGrid(random, 20, grids::kDExpertAct);
  const Floats probs{0.5f, 1, 0, 77.0f / 128};
  Floats y(20), dx(40), dprobs(4);
  Probe probe;
  const Numerics n = Checked(probe);
  GatedSwigluForward(n, 4, 5, x.data(), probs.data(), y.data());
  GatedSwigluDgrad(n, 4, 5, x.data(), probs.data(), dy.data(), dx.data(), dprobs.data());
  for (size_t r = 0; r < 4; ++r) {
    float dot = 0;
    for (size_t i = 5; i-- > 0;) {
      const float gate = x[r * 10 + i], up = x[r * 10 + 5 + i];
      const float sigmoid = 1.0f / (1.0f + Exp(-gate));
      const float a = Quantise(gate / (1.0f + Exp(-gate)) * up, grids::kActivation);
      dot = dot + a * dy[r * 5 + i];
      EXPECT_EQ(y[r * 5 + i], Quantise(a * probs[r], grids::kActivation));
      EXPECT_EQ(dx[r * 10 + 5 + i],
                Quantise(dy[r * 5 + i] * probs[r] * (gate * sigmoid), grids::kDExpertFc1));
    }
    EXPECT_EQ(dprobs[r], Quantise(dot, grids::kDRowProbability));
  }
}

TEST(GatedSwigluTest, GradientsAreThoseOfFiniteDifferences) {
  std::mt19937 random(8);
  Numerics n;
  n.quantised = false;
  const Floats x = Normal(random, 40), probs{0.5f, 1, 0, 0.25f}, dy = Normal(random, 20);
  Floats dx(40), dprobs(4);
  GatedSwigluDgrad(n, 4, 5, x.data(), probs.data(), dy.data(), dx.data(), dprobs.data());
  auto score = [&](const Floats& at, const Floats& p) {
    Floats y(20);
    GatedSwigluForward(n, 4, 5, at.data(), p.data(), y.data());
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(y[i]) * dy[i];
    return sum;
  };
  constexpr float kStep = 1.0f / 256;
  for (size_t i = 0; i < 44; ++i) {
    Floats up_x = x, down_x = x, up_p = probs, down_p = probs;
    (i < 40 ? up_x[i] : up_p[i - 40]) += kStep;
    (i < 40 ? down_x[i] : down_p[i - 40]) -= kStep;
    const double numeric = (score(up_x, up_p) - score(down_x, down_p)) / (2.0 * kStep);
    EXPECT_NEAR(numeric, static_cast<double>(i < 40 ? dx[i] : dprobs[i - 40]), 2e-3) << i;
  }
}

TEST(MoeProbeTest, OperandsOffTheirGridsAreNamed) {
  const RouterRule rule = SmallRule(Score::kSoftmax, 1);
  Probe probe;
  const Numerics n = Checked(probe);
  const Indices index{0, 1, 2, 3, 4, 5, 6, 7};
  const Floats fine(8 * 16, 0.25f), off(8 * 16, 0.25f + 1.0f / 512);
  Floats out(8 * 16), dprobs(8);
  auto unpermute = [&](const Floats& rows, const Floats& shared, const Floats& residual) {
    UnpermuteForward(n, rule, 8, rows.data(), index.data(), shared.data(), residual.data(),
                     out.data());
  };
  EXPECT_NO_THROW(unpermute(fine, fine, fine));
  EXPECT_THROW(unpermute(off, fine, fine), std::logic_error);
  EXPECT_THROW(unpermute(fine, off, fine), std::logic_error);
  EXPECT_THROW(unpermute(fine, fine, off), std::logic_error);
  auto permute = [&](const Floats& rows, const Floats& probs) {
    PermuteDgrad(n, rule, 8, index.data(), rows.data(), probs.data(), out.data(), dprobs.data());
  };
  EXPECT_NO_THROW(permute(fine, fine));
  EXPECT_THROW(permute(off, fine), std::logic_error);
  EXPECT_THROW(permute(fine, off), std::logic_error);
}

TEST(MoeProbeTest, AGradientOfAProbabilityThatIsTooLongIsNamed) {
  Probe probe;
  const Numerics n = Checked(probe);
  auto run = [&](int64_t ffn) {
    const auto count = static_cast<size_t>(ffn);
    const Floats x(2 * count, 127.0f / 32), dy(count, 127.0f / 128), probs{1};
    Floats dx(2 * count), dprobs(1);
    GatedSwigluDgrad(n, 1, ffn, x.data(), probs.data(), dy.data(), dx.data(), dprobs.data());
  };
  EXPECT_NO_THROW(run(1000));
  EXPECT_THROW(run(1100), std::logic_error);
}

}  // namespace
}  // namespace shardproof
