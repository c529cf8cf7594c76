#include "conformance/model/launch_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "conformance/abi/shardproof.h"
#include "conformance/model/model.h"

namespace shardproof {
namespace {

template <typename T>
SpanData Span(std::vector<T>& values, int32_t dtype, int32_t access) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size(), dtype, access};
}
SpanData Floats(std::vector<float>& values, int32_t access) {
  return Span(values, SPF_F32, access);
}
SpanData Doubles(std::vector<double>& values, int32_t access) {
  return Span(values, SPF_F64, access);
}
SpanData Bf16s(std::vector<uint16_t>& values, int32_t access) {
  return Span(values, SPF_BF16, access);
}

std::vector<uint16_t> InBf16(const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  for (float value : values) bits.push_back(ToBf16(value));
  return bits;
}

// Validates first, as a host does.
void Launch(int32_t kernel, const std::vector<SpanData>& spans,
            const std::vector<double>& scalars = {}) {
  ASSERT_EQ(ValidateLaunch(kernel, spans, scalars), "");
  RunLaunch(kernel, spans, scalars);
}

TEST(FillTest, EveryDtypeHoldsTheValue) {
  std::vector<float> f(3);
  std::vector<uint16_t> b(3);
  std::vector<int32_t> i(3);
  std::vector<uint8_t> u(3);
  Launch(SPF_K_FILL, {Floats(f, SPF_WRITE)}, {1.5});
  Launch(SPF_K_FILL, {Bf16s(b, SPF_WRITE)}, {1.5});
  Launch(SPF_K_FILL, {Span(i, SPF_I32, SPF_WRITE)}, {-7});
  Launch(SPF_K_FILL, {Span(u, SPF_U8, SPF_WRITE)}, {255});
  EXPECT_EQ(f, std::vector<float>(3, 1.5f));
  EXPECT_EQ(b, InBf16({1.5f, 1.5f, 1.5f}));
  EXPECT_EQ(i, std::vector<int32_t>(3, -7));
  EXPECT_EQ(u, std::vector<uint8_t>(3, 255));
}

TEST(FillTest, AValueThatAnIntegerCannotHoldIsRefused) {
  std::vector<int32_t> i(3);
  EXPECT_NE(ValidateLaunch(SPF_K_FILL, {Span(i, SPF_I32, SPF_WRITE)}, {0.5}), "");
  EXPECT_NE(ValidateLaunch(SPF_K_FILL, {Span(i, SPF_I32, SPF_WRITE)}, {3e9}), "");
  EXPECT_NE(ValidateLaunch(SPF_K_FILL, {Span(i, SPF_I32, SPF_WRITE)}, {NAN}), "");
}

TEST(AxpbyTest, EachOperationRoundsOnceInFp32) {
  std::vector<float> x{0.1f, 3.0f}, y{0.7f, -1.0f};
  const float a = 0.3f, b = 0.9f;
  const std::vector<float> want{a * 0.1f + b * 0.7f, a * 3.0f + b * -1.0f};
  Launch(SPF_K_AXPBY, {Floats(x, SPF_READ), Floats(y, SPF_ADD)}, {0.3, 0.9});
  EXPECT_EQ(y, want);
}

TEST(AxpbyTest, TheDeviceScalarIsRoundedBeforeItMultiplies) {
  std::vector<float> x{1.0f / 3}, y{NAN};
  std::vector<double> s{0.1};
  Launch(SPF_K_AXPBY, {Floats(x, SPF_READ), Floats(y, SPF_WRITE), Doubles(s, SPF_READ)}, {0.7, 0});
  EXPECT_EQ(y[0], (0.7f * 0.1f) * (1.0f / 3));
}

TEST(AxpbyTest, WithoutBTheTargetIsOnlyWritten) {
  std::vector<float> x{2.0f}, y{NAN};
  Launch(SPF_K_AXPBY, {Floats(x, SPF_READ), Floats(y, SPF_WRITE)}, {1, 0});
  EXPECT_EQ(y[0], 2.0f);
}

TEST(AxpbyTest, ZeroTimesNotANumberStaysVisible) {
  std::vector<float> x{NAN}, y{1.0f};
  Launch(SPF_K_AXPBY, {Floats(x, SPF_READ), Floats(y, SPF_ADD)}, {0, 1});
  EXPECT_TRUE(std::isnan(y[0]));
}

// Machines differ in sign and payload of a NaN that an operation makes.
TEST(AxpbyTest, WhatIsNotANumberIsStoredAsOneNaN) {
  const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
  std::vector<float> x{std::bit_cast<float>(0xFFFFFFFFu), std::bit_cast<float>(0x7FABCDEFu)}, y(2);
  Launch(SPF_K_AXPBY, {Floats(x, SPF_READ), Floats(y, SPF_WRITE)}, {1, 0});
  EXPECT_EQ(bits(y[0]), 0x7FC00000u);
  EXPECT_EQ(bits(y[1]), 0x7FC00000u);
  std::vector<uint16_t> narrow(2);
  Launch(SPF_K_AXPBY, {Floats(x, SPF_READ), Bf16s(narrow, SPF_WRITE)}, {1, 0});
  EXPECT_EQ(narrow, std::vector<uint16_t>(2, 0x7FC0));
  std::vector<double> wide(2);
  Launch(SPF_K_AXPBY, {Floats(x, SPF_READ), Doubles(wide, SPF_WRITE)}, {1, 0});
  EXPECT_EQ(std::bit_cast<uint64_t>(wide[1]), 0x7FF8000000000000u);
}

TEST(AxpbyTest, CastsRoundToNearestEven) {
  std::vector<float> x{1.00390625f, 1.01171875f, -0.3f};
  std::vector<uint16_t> y(3);
  Launch(SPF_K_AXPBY, {Floats(x, SPF_READ), Bf16s(y, SPF_WRITE)}, {1, 0});
  EXPECT_EQ(y, InBf16(x));
  std::vector<double> wide(3);
  Launch(SPF_K_AXPBY, {Bf16s(y, SPF_READ), Doubles(wide, SPF_WRITE)}, {1, 0});
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(wide[i], static_cast<double>(FromBf16(y[i])));
}

TEST(AxpbyTest, DoubleToBf16RoundsOnce) {
  // Beside the middle of two bf16 numbers, by less than fp32 can tell.
  const double middle = 1.00390625, little = 1e-12;
  std::vector<double> x{middle + little, middle - little, -middle - little, -middle + little};
  x.insert(x.end(), {middle, 3 * middle, 1e300, -1e-300});
  std::vector<uint16_t> y(x.size());
  Launch(SPF_K_AXPBY, {Doubles(x, SPF_READ), Bf16s(y, SPF_WRITE)}, {1, 0});
  EXPECT_EQ(y, InBf16({1.0078125f, 1.0f, -1.0078125f, -1.0f, 1.0f, 3.015625f, INFINITY, -0.0f}));
}

TEST(AxpbyTest, AddingTwoBf16RoundsToBf16) {
  std::vector<uint16_t> x = InBf16({1.0f}), y = InBf16({256.0f});
  Launch(SPF_K_AXPBY, {Bf16s(x, SPF_READ), Bf16s(y, SPF_ADD)}, {1, 1});
  EXPECT_EQ(FromBf16(y[0]), 256.0f);  // 257 lies between 256 and 258
}

TEST(AxpbyTest, MixedDtypesComputeInTheWider) {
  std::vector<uint16_t> x = InBf16({1.0f});
  std::vector<float> y{256.0f};
  Launch(SPF_K_AXPBY, {Bf16s(x, SPF_READ), Floats(y, SPF_ADD)}, {1, 1});
  EXPECT_EQ(y[0], 257.0f);
  std::vector<double> wide{1e-12};
  std::vector<float> one{1.0f};
  Launch(SPF_K_AXPBY, {Floats(one, SPF_READ), Doubles(wide, SPF_ADD)}, {1, 1});
  EXPECT_EQ(wide[0], 1.0 + 1e-12);
}

TEST(AxpbyTest, AccessMustSayWhetherTheTargetIsRead) {
  std::vector<float> x(2), y(2);
  EXPECT_NE(ValidateLaunch(SPF_K_AXPBY, {Floats(x, SPF_READ), Floats(y, SPF_WRITE)}, {1, 1}), "");
  EXPECT_NE(ValidateLaunch(SPF_K_AXPBY, {Floats(x, SPF_READ), Floats(y, SPF_ADD)}, {1, 0}), "");
  EXPECT_NE(ValidateLaunch(SPF_K_AXPBY, {Floats(x, SPF_ADD), Floats(y, SPF_WRITE)}, {1, 0}), "");
}

TEST(AxpbyTest, WrongFormsAreRefused) {
  std::vector<float> x(2), y(3);
  std::vector<int32_t> z(2);
  EXPECT_NE(ValidateLaunch(SPF_K_AXPBY, {Floats(x, SPF_READ), Floats(y, SPF_WRITE)}, {1, 0}), "");
  EXPECT_NE(ValidateLaunch(SPF_K_AXPBY, {Floats(x, SPF_READ), Span(z, SPF_I32, SPF_WRITE)}, {1, 0}),
            "");
  EXPECT_NE(ValidateLaunch(SPF_K_AXPBY, {Floats(x, SPF_READ)}, {1, 0}), "");
  EXPECT_NE(ValidateLaunch(SPF_K_AXPBY, {Floats(x, SPF_READ), Floats(x, SPF_WRITE)}, {1}), "");
  EXPECT_NE(
      ValidateLaunch(SPF_K_AXPBY, {Floats(x, SPF_READ), Floats(x, SPF_WRITE), Floats(y, SPF_READ)},
                     {1, 0}),
      "");
}

TEST(SumSquaresTest, AddsToTheAccumulatorInFp64) {
  std::vector<float> x{3.0f, 1e-4f};
  std::vector<double> out{100};
  const double small = static_cast<double>(1e-4f);
  Launch(SPF_K_SUM_SQUARES, {Floats(x, SPF_READ), Doubles(out, SPF_ADD)});
  EXPECT_EQ(out[0], 100.0 + 9.0 + small * small);
}

// Each chunk of 4096 on its own, in order of its elements; then chunk after chunk.
TEST(SumSquaresTest, AddsChunkByChunk) {
  const auto sum = [](std::vector<double> x, double before) {
    std::vector<double> out{before};
    Launch(SPF_K_SUM_SQUARES, {Doubles(x, SPF_READ), Doubles(out, SPF_ADD)});
    return out[0];
  };
  const double big = 1e8;  // its square is 1e16: adding 1 to that changes nothing
  std::vector<double> x(3 * 4096, 0.0);
  x[0] = big;
  x[1] = x[2] = x[3] = x[4] = 1;
  EXPECT_EQ(sum(x, 0), 1e16);
  x[1] = x[2] = x[3] = x[4] = 0;
  x[4096] = x[4097] = x[8190] = x[8191] = 1;  // a chunk that holds 4
  EXPECT_EQ(sum(x, 0), 1e16 + 4);
  x[0] = x[8190] = x[8191] = 0;
  x[8192] = x[8193] = 1;
  x[4096] = x[4097] = 1;
  x[4098] = x[8194] = 1;  // two chunks that hold 3 each
  EXPECT_EQ(sum(x, 0), 6);
  EXPECT_EQ(sum(x, 1e16), (1e16 + 3) + 3);
  EXPECT_NE(sum(x, 1e16), 1e16 + 6);
}

TEST(CountTest, NonFiniteAndZero) {
  std::vector<float> x{0.0f, -0.0f, NAN, INFINITY, -INFINITY, 1.0f};
  std::vector<double> bad{1}, zero{0};
  Launch(SPF_K_COUNT_NONFINITE, {Floats(x, SPF_READ), Doubles(bad, SPF_ADD)});
  Launch(SPF_K_COUNT_ZERO, {Floats(x, SPF_READ), Doubles(zero, SPF_ADD)});
  EXPECT_EQ(bad[0], 4);
  EXPECT_EQ(zero[0], 2);
}

TEST(NormScaleTest, IsCappedAndKeepsNotANumber) {
  std::vector<double> ss{16}, out{0};
  Launch(SPF_K_NORM_SCALE, {Doubles(ss, SPF_READ), Doubles(out, SPF_WRITE)}, {2, 1e-6, 1});
  EXPECT_EQ(out[0], 2 / (4 + 1e-6));
  ss[0] = 0.25;
  Launch(SPF_K_NORM_SCALE, {Doubles(ss, SPF_READ), Doubles(out, SPF_WRITE)}, {2, 1e-6, 1});
  EXPECT_EQ(out[0], 1);
  ss[0] = NAN;
  Launch(SPF_K_NORM_SCALE, {Doubles(ss, SPF_READ), Doubles(out, SPF_WRITE)}, {2, 1e-6, 1});
  EXPECT_TRUE(std::isnan(out[0]));
}

TEST(AdamWTest, TwoStepsByHand) {
  std::vector<float> p{1.0f}, m{0.0f}, v{0.0f}, g{0.5f};
  const std::vector<SpanData> spans{Floats(p, SPF_ADD), Floats(m, SPF_ADD), Floats(v, SPF_ADD),
                                    Floats(g, SPF_READ)};
  const float lr = 0.1f, wd = 0.01f, eps = 0.0078125f;
  Launch(SPF_K_ADAMW, spans, {0.1, 0.5, 0.75, 0.0078125, 0.01, 1});
  // m = 0.25, v = 0.0625, c1 = 0.5, c2 = 0.25
  float want = 1.0f - (lr * wd) * 1.0f;
  want = want - lr * (0.5f / (std::sqrt(0.25f) + eps));
  EXPECT_EQ(p[0], want);
  EXPECT_EQ(m[0], 0.25f);
  EXPECT_EQ(v[0], 0.0625f);
  Launch(SPF_K_ADAMW, spans, {0.1, 0.5, 0.75, 0.0078125, 0.01, 2});
  // m = 0.375, v = 0.109375, c1 = 0.75, c2 = 0.4375
  want = want - (lr * wd) * want;
  want = want - lr * ((0.375f / 0.75f) / (std::sqrt(0.109375f / 0.4375f) + eps));
  EXPECT_EQ(p[0], want);
}

TEST(AdamWTest, OnlyFp32AndStepsFromOneAreAccepted) {
  std::vector<float> p(2);
  std::vector<uint16_t> g(2);
  const SpanData a = Floats(p, SPF_ADD);
  EXPECT_NE(ValidateLaunch(SPF_K_ADAMW, {a, a, a, Bf16s(g, SPF_READ)}, {1, 0.5, 0.5, 1, 0, 1}), "");
  EXPECT_NE(ValidateLaunch(SPF_K_ADAMW, {a, a, a, Floats(p, SPF_READ)}, {1, 0.5, 0.5, 1, 0, 0}),
            "");
  EXPECT_EQ(ValidateLaunch(SPF_K_ADAMW, {a, a, a, Floats(p, SPF_READ)}, {1, 0.5, 0.5, 1, 0, 1}),
            "");
}

TEST(GemmTest, TransposesAlphaAndBeta) {
  std::vector<float> a{1, 2, 3, 4, 5, 6};  // 2 x 3, or its transpose 3 x 2
  std::vector<float> b{1, 0, 2, 1, 0, 3};  // 3 x 2, or its transpose 2 x 3
  std::vector<float> c(4, NAN);
  Launch(SPF_K_GEMM, {Floats(a, SPF_READ), Floats(b, SPF_READ), Floats(c, SPF_WRITE)},
         {2, 2, 3, 0, 0, 1, 0});
  EXPECT_EQ(c, (std::vector<float>{5, 11, 14, 23}));
  Launch(SPF_K_GEMM, {Floats(a, SPF_READ), Floats(b, SPF_READ), Floats(c, SPF_ADD)},
         {2, 2, 3, 0, 1, 2, 1});
  EXPECT_EQ(c, (std::vector<float>{5 + 2 * 7, 11 + 2 * 10, 14 + 2 * 16, 23 + 2 * 22}));
  std::vector<float> d(4);
  Launch(SPF_K_GEMM, {Floats(a, SPF_READ), Floats(b, SPF_READ), Floats(d, SPF_WRITE)},
         {2, 2, 3, 1, 0, 1, 0});
  EXPECT_EQ(d, (std::vector<float>{7, 18, 10, 22}));
}

TEST(GemmTest, SizesMustFit) {
  std::vector<float> a(6), b(6), c(5);
  EXPECT_NE(
      ValidateLaunch(SPF_K_GEMM, {Floats(a, SPF_READ), Floats(b, SPF_READ), Floats(c, SPF_WRITE)},
                     {2, 2, 3, 0, 0, 1, 0}),
      "");
}

TEST(LaunchTest, KernelsOfTheHostAreNotNamedOnes) {
  std::vector<float> x(1);
  EXPECT_NE(ValidateLaunch(SPF_K_DISCARD, {Floats(x, SPF_WRITE)}, {}), "");
  EXPECT_NE(ValidateLaunch(SPF_K_CUSTOM, {Floats(x, SPF_WRITE)}, {}), "");
}

}  // namespace
}  // namespace shardproof
