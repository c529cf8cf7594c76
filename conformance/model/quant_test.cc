#include "conformance/model/quant.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "conformance/model/model.h"

namespace shardproof {
namespace {

constexpr Grid kQuarters{-2, 10};

TEST(QuantTest, TiesGoToTheEvenQuantum) {
  EXPECT_EQ(Quantise(0.125f, kQuarters), 0.0f);
  EXPECT_EQ(Quantise(0.375f, kQuarters), 0.5f);
  EXPECT_EQ(Quantise(-0.375f, kQuarters), -0.5f);
  EXPECT_EQ(Quantise(0.26f, kQuarters), 0.25f);
}

TEST(QuantTest, ValuesBeyondTheGridAreClamped) {
  EXPECT_EQ(Quantise(99.0f, kQuarters), 2.5f);
  EXPECT_EQ(Quantise(-99.0f, kQuarters), -2.5f);
  EXPECT_EQ(Quantise(std::numeric_limits<float>::infinity(), kQuarters), 2.5f);
}

TEST(QuantTest, NotANumberPassesThrough) {
  EXPECT_TRUE(std::isnan(Quantise(std::numeric_limits<float>::quiet_NaN(), kQuarters)));
  EXPECT_TRUE(std::isnan(Exp(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(Log(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(FromBf16(ToBf16(std::bit_cast<float>(0xffffffffu)))));
}

TEST(QuantTest, ZeroIsNeverNegative) {
  EXPECT_FALSE(std::signbit(Quantise(-0.01f, kQuarters)));
  EXPECT_FALSE(std::signbit(Quantise(-0.0f, kQuarters)));
}

// Distance in units of the last place of the right answer.
double Ulps(float got, double want) {
  const auto rounded = static_cast<float>(want);
  const double ulp =
      static_cast<double>(std::nextafterf(std::fabs(rounded), INFINITY)) - std::fabs(rounded);
  return std::fabs(static_cast<double>(got) - want) / ulp;
}

TEST(QuantTest, ExpIsWithinTwoUlp) {
  for (float x = -86.0f; x < 86.0f; x += 0.00137f) {
    ASSERT_LT(Ulps(Exp(x), std::exp(static_cast<double>(x))), 2.0) << x;
  }
  EXPECT_EQ(Exp(0.0f), 1.0f);
}

TEST(QuantTest, LogIsWithinTwoUlp) {
  for (float x = 1.03f; x < 5000.0f; x *= 1.00017f) {
    ASSERT_LT(Ulps(Log(x), std::log(static_cast<double>(x))), 2.0) << x;
  }
  EXPECT_EQ(Log(1.0f), 0.0f);
}

TEST(QuantTest, Bf16RoundsToNearestEven) {
  EXPECT_EQ(ToBf16(1.0f), 0x3f80);
  EXPECT_EQ(FromBf16(ToBf16(1.00390625f)), 1.0f);       // halfway between 1 and 1 + 2^-7
  EXPECT_EQ(FromBf16(ToBf16(1.01171875f)), 1.015625f);  // halfway, the other neighbour is even
  EXPECT_EQ(FromBf16(ToBf16(-3.140625f)), -3.140625f);
  EXPECT_EQ(FromBf16(ToBf16(std::numeric_limits<float>::max())),
            std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace shardproof
