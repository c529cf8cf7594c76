#include "conformance/trace/digest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "conformance/abi/shardproof.h"

namespace shardproof {
namespace {

TEST(Digest, ShardsAddUpToTheWhole) {
  const std::vector<float> whole = {1.5f, -2, 0, 7, 1e30f, 3};
  const uint64_t left = DigestValues(whole.data(), SPF_F32, 0, 2);
  const uint64_t right = DigestValues(whole.data() + 2, SPF_F32, 2, 4);
  EXPECT_EQ(left + right, DigestValues(whole.data(), SPF_F32, 0, 6));
}

TEST(Digest, PlaceMatters) {
  const std::vector<float> ab = {1, 2}, ba = {2, 1};
  EXPECT_NE(DigestValues(ab.data(), SPF_F32, 0, 2), DigestValues(ba.data(), SPF_F32, 0, 2));
  EXPECT_NE(DigestValues(ab.data(), SPF_F32, 0, 1), DigestValues(ab.data(), SPF_F32, 1, 1));
}

TEST(Digest, OneBitMatters) {
  const std::vector<double> a = {1}, b = {std::nextafter(1, 2)};
  EXPECT_NE(DigestValues(a.data(), SPF_F64, 0, 1), DigestValues(b.data(), SPF_F64, 0, 1));
}

TEST(Digest, MinusZeroCountsAsZeroInEveryFloatingType) {
  const uint16_t half[2] = {0x8000, 0};
  const float single[2] = {-0.f, 0.f};
  const double wide[2] = {-0., 0.};
  for (int dtype : {SPF_BF16, SPF_F16}) {
    EXPECT_EQ(DigestValues(half, dtype, 3, 1), DigestValues(half + 1, dtype, 3, 1));
  }
  EXPECT_EQ(DigestValues(single, SPF_F32, 3, 1), DigestValues(single + 1, SPF_F32, 3, 1));
  EXPECT_EQ(DigestValues(wide, SPF_F64, 3, 1), DigestValues(wide + 1, SPF_F64, 3, 1));
}

TEST(Digest, TheSmallestIntegerIsNoZero) {
  const int32_t values[2] = {std::numeric_limits<int32_t>::min(), 0};
  EXPECT_NE(DigestValues(values, SPF_I32, 0, 1), DigestValues(values + 1, SPF_I32, 0, 1));
}

TEST(Digest, DataNeedNotBeAligned) {
  std::vector<char> bytes(13, 0);
  const double value = 2.5;
  std::memcpy(bytes.data() + 5, &value, sizeof value);
  EXPECT_EQ(DigestValues(bytes.data() + 5, SPF_F64, 0, 1), DigestValues(&value, SPF_F64, 0, 1));
}

TEST(Digest, AgreesWithAnIndependentCalculation) {
  // Computed from the definition in FORMAT.md with arbitrary-precision integers.
  const std::vector<uint8_t> values = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(DigestValues(values.data(), SPF_U8, 0, 8), 9199818207267761089u);
}

TEST(Digest, AnUnknownTypeIsRefused) {
  EXPECT_THROW(DigestValues(nullptr, 99, 0, 0), std::invalid_argument);
  EXPECT_THROW(ValueAt(nullptr, 0, 0), std::invalid_argument);
}

TEST(ValueAt, HalfPrecision) {
  const uint16_t bits[] = {0x3C00, 0xC000, 0x0001, 0x7BFF, 0x7C00, 0xFC00, 0x8000};
  const double values[] = {1, -2, std::ldexp(1, -24), 65504, INFINITY, -INFINITY, -0.};
  for (int i = 0; i < 7; ++i) EXPECT_EQ(ValueAt(bits, SPF_F16, i), values[i]) << i;
  EXPECT_TRUE(std::signbit(ValueAt(bits, SPF_F16, 6)));
  const uint16_t nan = 0x7C01;
  EXPECT_TRUE(std::isnan(ValueAt(&nan, SPF_F16, 0)));
}

TEST(ValueAt, OtherTypes) {
  const uint16_t bf16[] = {0x3F80, 0xC040};
  EXPECT_EQ(ValueAt(bf16, SPF_BF16, 0), 1);
  EXPECT_EQ(ValueAt(bf16, SPF_BF16, 1), -3);
  const int32_t i32 = -7;
  EXPECT_EQ(ValueAt(&i32, SPF_I32, 0), -7);
  const int64_t i64 = -8;
  EXPECT_EQ(ValueAt(&i64, SPF_I64, 0), -8);
  const uint8_t u8 = 200;
  EXPECT_EQ(ValueAt(&u8, SPF_U8, 0), 200);
  const float f32 = 0.1f;
  EXPECT_EQ(ValueAt(&f32, SPF_F32, 0), static_cast<double>(0.1f));
  const double f64 = 0.1;
  EXPECT_EQ(ValueAt(&f64, SPF_F64, 0), 0.1);
}

}  // namespace
}  // namespace shardproof
