#include "conformance/model/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "conformance/abi/shardproof.h"
#include "conformance/model/grids.h"
#include "conformance/model/model.h"

namespace shardproof {
namespace {

std::vector<float> OnGrid(std::mt19937& random, int64_t n, Grid grid) {
  std::uniform_int_distribution<int32_t> quanta(-grid.q, grid.q);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = static_cast<float>(quanta(random)) * PowerOfTwo(grid.e);
  return values;
}

// Sum of a[i * sa] * b[i * sb] in a random order.
float NaiveDot(std::mt19937& random, const float* a, int64_t sa, const float* b, int64_t sb,
               int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  float sum = 0;
  for (int64_t i : order) sum = sum + a[i * sa] * b[i * sb];
  return sum;
}

class LinearTest : public testing::TestWithParam<LinearShape> {
 protected:
  std::mt19937 random_{7};
  const LinearShape s_ = GetParam();
  const Numerics n_;
  const std::vector<float> x_ = OnGrid(random_, s_.tokens* s_.in, grids::kActivation);
  const std::vector<float> w_ = OnGrid(random_, s_.in* s_.out, grids::kWeight);
  const std::vector<float> dy_ = OnGrid(random_, s_.tokens* s_.out, grids::kDFc1);
};

TEST_P(LinearTest, ForwardEqualsLoopsInAnyOrder) {
  const std::vector<float> bias = OnGrid(random_, s_.out, grids::kWeight);
  std::vector<float> y(static_cast<size_t>(s_.tokens * s_.out));
  LinearForward(n_, s_, x_.data(), w_.data(), bias.data(), y.data());
  for (int64_t t = 0; t < s_.tokens; ++t) {
    for (int64_t o = 0; o < s_.out; ++o) {
      const float sum = NaiveDot(random_, &x_[static_cast<size_t>(t * s_.in)], 1,
                                 &w_[static_cast<size_t>(o * s_.in)], 1, s_.in);
      ASSERT_EQ(y[static_cast<size_t>(t * s_.out + o)], sum + bias[static_cast<size_t>(o)]);
    }
  }
}

TEST_P(LinearTest, DgradEqualsLoopsInAnyOrder) {
  std::vector<float> dx(x_.size());
  LinearDgrad(n_, s_, dy_.data(), grids::kDFc1, w_.data(), grids::kDNormOut, dx.data());
  for (int64_t t = 0; t < s_.tokens; ++t) {
    for (int64_t i = 0; i < s_.in; ++i) {
      const float sum = NaiveDot(random_, &dy_[static_cast<size_t>(t * s_.out)], 1,
                                 &w_[static_cast<size_t>(i)], s_.in, s_.out);
      ASSERT_EQ(dx[static_cast<size_t>(t * s_.in + i)], Quantise(sum, grids::kDNormOut));
    }
  }
}

TEST_P(LinearTest, WgradEqualsLoopsInAnyOrder) {
  std::vector<float> dw(w_.size(), 1.0f);
  LinearWgrad(n_, s_, x_.data(), dy_.data(), grids::kDFc1, {"w", dw.data(), SPF_F32});
  for (int64_t o = 0; o < s_.out; ++o) {
    for (int64_t i = 0; i < s_.in; ++i) {
      const float sum = NaiveDot(random_, &dy_[static_cast<size_t>(o)], s_.out,
                                 &x_[static_cast<size_t>(i)], s_.in, s_.tokens);
      ASSERT_EQ(dw[static_cast<size_t>(o * s_.in + i)], 1.0f + sum);
    }
  }
}

TEST_P(LinearTest, TokensMayBeSummedInAnyGroups) {
  std::vector<float> whole(w_.size()), parts(w_.size()), whole_bias(static_cast<size_t>(s_.out)),
      parts_bias(whole_bias);
  LinearWgrad(n_, s_, x_.data(), dy_.data(), grids::kDFc1, {"w", whole.data(), SPF_F32});
  LinearBiasGrad(n_, s_, dy_.data(), grids::kDFc1, {"b", whole_bias.data(), SPF_F32});
  std::vector<int64_t> order(static_cast<size_t>(s_.tokens));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random_);
  for (int64_t t : order) {
    const LinearShape one{1, s_.in, s_.out};
    LinearWgrad(n_, one, &x_[static_cast<size_t>(t * s_.in)], &dy_[static_cast<size_t>(t * s_.out)],
                grids::kDFc1, {"w", parts.data(), SPF_F32});
    LinearBiasGrad(n_, one, &dy_[static_cast<size_t>(t * s_.out)], grids::kDFc1,
                   {"b", parts_bias.data(), SPF_F32});
  }
  EXPECT_EQ(whole, parts);
  EXPECT_EQ(whole_bias, parts_bias);
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearTest,
                         testing::Values(LinearShape{1, 1, 1}, LinearShape{8, 16, 48},
                                         LinearShape{7, 17, 29}, LinearShape{64, 80, 33}));

TEST(LinearNarrowTest, GradientsInBf16EqualGradientsInFp32) {
  std::mt19937 random(3);
  Numerics n;
  n.narrow = true;
  const LinearShape s{16, 9, 5};
  std::vector<float> wide(45);
  std::vector<uint16_t> narrow(45);
  for (int microbatch = 0; microbatch < 16; ++microbatch) {  // 256 tokens
    const std::vector<float> x = OnGrid(random, s.tokens * s.in, grids::kActivation);
    const std::vector<float> dy = OnGrid(random, s.tokens * s.out, grids::kDFc1);
    LinearWgrad(n, s, x.data(), dy.data(), grids::kDFc1, {"w", wide.data(), SPF_F32});
    LinearWgrad(n, s, x.data(), dy.data(), grids::kDFc1, {"w", narrow.data(), SPF_BF16});
  }
  for (size_t i = 0; i < wide.size(); ++i) EXPECT_EQ(FromBf16(narrow[i]), wide[i]);
  EXPECT_NE(wide, std::vector<float>(45));
}

TEST(LinearProbeTest, AnOperandOffItsGridIsNamed) {
  Numerics n;
  Probe probe;
  probe.check_bounds = true;
  n.probe = &probe;
  const std::vector<float> x{0.01f}, w{0.5f};
  std::vector<float> y(1);
  EXPECT_THROW(LinearForward(n, {1, 1, 1}, x.data(), w.data(), nullptr, y.data()),
               std::logic_error);
}

TEST(LinearProbeTest, ASumThatIsTooLongIsNamed) {
  Numerics n;
  Probe probe;
  probe.check_bounds = true;
  n.probe = &probe;
  const LinearShape s{1, 1100, 1};
  const std::vector<float> x(1100, 127.0f / 32), w(1100, 127.0f / 128);
  std::vector<float> y(1);
  EXPECT_THROW(LinearForward(n, s, x.data(), w.data(), nullptr, y.data()), std::logic_error);
}

}  // namespace
}  // namespace shardproof
