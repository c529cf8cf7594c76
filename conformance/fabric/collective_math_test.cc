#include "conformance/fabric/collective_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace shardproof {
using wire::FromBf16, wire::FromF16, wire::ToBf16, wire::ToF16;
namespace {

template <class T>
std::byte* Bytes(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

// The nearest multiple of the format's spacing at value, ties to even, in double: no bit tricks.
double RoundTo(double value, int fraction_bits, int min_exponent) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const double spacing = std::ldexp(1.0, std::max(exponent - 1, min_exponent) - fraction_bits);
  return std::nearbyint(value / spacing) * spacing;
}

TEST(Conversions, EveryBf16AndF16SurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    if (std::isnan(FromBf16(half))) {
      EXPECT_TRUE(std::isnan(FromBf16(ToBf16(FromBf16(half)))));
    } else {
      EXPECT_EQ(ToBf16(FromBf16(half)), half);
    }
    if (std::isnan(FromF16(half))) {
      EXPECT_TRUE(std::isnan(FromF16(ToF16(FromF16(half)))));
    } else {
      EXPECT_EQ(ToF16(FromF16(half)), half);
    }
  }
}

TEST(Conversions, RoundToNearestEvenBetweenAnyTwoNeighbours) {
  for (uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const double low = FromF16(static_cast<uint16_t>(bits)),
                 high = FromF16(static_cast<uint16_t>(bits + 1));
    for (const double part : {0.25, 0.5, 0.75}) {
      const auto between = static_cast<float>(low + part * (high - low));
      ASSERT_EQ(FromF16(ToF16(between)), RoundTo(between, 10, -14)) << bits << " " << part;
      ASSERT_EQ(FromF16(ToF16(-between)), -RoundTo(between, 10, -14)) << bits << " " << part;
    }
  }
  for (uint32_t bits = 0x80; bits < 0x7F7F; ++bits) {
    const double low = FromBf16(static_cast<uint16_t>(bits)),
                 high = FromBf16(static_cast<uint16_t>(bits + 1));
    for (const double part : {0.25, 0.5, 0.75}) {
      const auto between = static_cast<float>(low + part * (high - low));
      ASSERT_EQ(FromBf16(ToBf16(between)), RoundTo(between, 7, -126)) << bits << " " << part;
    }
  }
}

TEST(Conversions, LargeValuesBecomeInfinite) {
  EXPECT_EQ(ToF16(65504.0f), 0x7BFF);
  EXPECT_EQ(ToF16(65519.0f), 0x7BFF);
  EXPECT_EQ(ToF16(65520.0f), 0x7C00);
  EXPECT_EQ(ToF16(-1e30f), 0xFC00);
  EXPECT_EQ(ToBf16(std::numeric_limits<float>::max()), 0x7F80);
}

TEST(AddInto, EveryDtypeAdds) {
  std::vector<uint8_t> u8{250, 1}, u8_more{10, 2};
  AddInto(Bytes(u8), Bytes(u8_more), 2, SPF_U8);
  EXPECT_EQ(u8, (std::vector<uint8_t>{4, 3}));  // wraps
  std::vector<int32_t> i32{std::numeric_limits<int32_t>::max(), -5}, i32_more{1, 2};
  AddInto(Bytes(i32), Bytes(i32_more), 2, SPF_I32);
  EXPECT_EQ(i32, (std::vector<int32_t>{std::numeric_limits<int32_t>::min(), -3}));
  std::vector<int64_t> i64{int64_t{1} << 40}, i64_more{-1};
  AddInto(Bytes(i64), Bytes(i64_more), 1, SPF_I64);
  EXPECT_EQ(i64[0], (int64_t{1} << 40) - 1);
  std::vector<float> f32{16777216.0f}, f32_more{1.0f};
  AddInto(Bytes(f32), Bytes(f32_more), 1, SPF_F32);
  EXPECT_EQ(f32[0], 16777216.0f);  // one rounding, in fp32
  std::vector<double> f64{16777216.0}, f64_more{1.0};
  AddInto(Bytes(f64), Bytes(f64_more), 1, SPF_F64);
  EXPECT_EQ(f64[0], 16777217.0);
  std::vector<uint16_t> bf16{ToBf16(256.0f)}, bf16_more{ToBf16(1.0f)};
  AddInto(Bytes(bf16), Bytes(bf16_more), 1, SPF_BF16);
  EXPECT_EQ(FromBf16(bf16[0]), 256.0f);
  std::vector<uint16_t> f16{ToF16(2048.0f)}, f16_more{ToF16(3.0f)};
  AddInto(Bytes(f16), Bytes(f16_more), 1, SPF_F16);
  EXPECT_EQ(FromF16(f16[0]), 2052.0f);  // 2051 is a tie
}

TEST(AddInto, PoisonPassesThrough) {
  std::vector<float> sum{1.0f}, poison{std::bit_cast<float>(0xFFFFFFFFu)};
  AddInto(Bytes(sum), Bytes(poison), 1, SPF_F32);
  EXPECT_TRUE(std::isnan(sum[0]));
}

TEST(Average, MultipliesByTheReciprocalRoundedToTheWireDtype) {
  std::vector<float> f32{7.0f};
  ScaleForAverage(Bytes(f32), 1, SPF_F32, 7);
  EXPECT_EQ(f32[0], 7.0f * (1.0f / 7.0f));
  std::vector<uint16_t> bf16{ToBf16(200.0f)};
  ScaleForAverage(Bytes(bf16), 1, SPF_BF16, 3);
  EXPECT_EQ(FromBf16(bf16[0]), 67.0f);  // 1/3 in bf16 is 0.334; 200 / 3 would round to 66.5
}

TEST(Average, IntegersAreDividedAfterTheSum) {
  std::vector<int32_t> i32{-7, 7};
  ScaleForAverage(Bytes(i32), 2, SPF_I32, 2);
  EXPECT_EQ(i32, (std::vector<int32_t>{-7, 7}));
  FinishAverage(Bytes(i32), 2, SPF_I32, 2);
  EXPECT_EQ(i32, (std::vector<int32_t>{-3, 3}));
}

}  // namespace
}  // namespace shardproof
