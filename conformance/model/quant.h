// quant.h: on which grid does a number lie, and how is it put there?
//
// A grid is k * 2^e with |k| <= q. Sums whose operands lie on grids with few bits are exact in fp32
// in any order (NUMERICS.md). Everything here is made of single IEEE operations: the same bits on
// every machine, and constexpr, so that device code uses the very same functions.
#pragma once
#include <bit>
#include <cstdint>

namespace shardproof {

struct Grid {
  int32_t e = 0;  // log2 of the quantum
  int32_t q = 0;  // largest number of quanta, below 2^22
};

// 2^e, e in [-126, 127].
constexpr float PowerOfTwo(int32_t e) {
  return std::bit_cast<float>(static_cast<uint32_t>(e + 127) << 23);
}

// The nearest point of the grid, ties to even, clamped to its ends. NaN stays NaN; never -0.
constexpr float Quantise(float x, Grid grid) {
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: adding it leaves no bits for a fraction
  const auto limit = static_cast<float>(grid.q);
  float s = x * PowerOfTwo(-grid.e);
  s = s > limit ? limit : s;
  s = s < -limit ? -limit : s;
  return ((s + kMagic) - kMagic) * PowerOfTwo(grid.e);
}

// e^x and ln(x) in fp32 from +, * and comparisons alone; about 1 ulp. x of Log is positive and
// normal. NaN stays NaN.
constexpr float Exp(float x) {
  if (x != x) return x;
  x = x > 87.0f ? 87.0f : x;
  x = x < -87.0f ? -87.0f : x;
  constexpr float kMagic = 12582912.0f;
  const float n = (x * 1.44269504088896341f + kMagic) - kMagic;
  float r = x - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r);
  p = p + r;
  p = p + 1.0f;
  return p * PowerOfTwo(static_cast<int32_t>(n));
}

constexpr float Log(float x) {
  if (x != x) return x;
  const auto bits = std::bit_cast<uint32_t>(x);
  auto exponent = static_cast<int32_t>(bits >> 23) - 126;
  float m = std::bit_cast<float>((bits & 0x7fffffu) | 0x3f000000u);  // in [0.5, 1)
  if (m < 0.70710678f) {
    exponent -= 1;
    m = m + m;
  }
  m = m - 1.0f;
  float p = 7.0376836292e-2f;
  p = p * m + -1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m + -1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m + -1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m + -2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  const float square = m * m;
  p = p * m;
  p = p * square;
  const auto e = static_cast<float>(exponent);
  p = p + e * -2.12194440e-4f;
  p = p - 0.5f * square;
  return (m + p) + e * 0.693359375f;
}

// fp32 -> bf16 bits, round to nearest even, NaN kept; and back.
constexpr uint16_t ToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float FromBf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace shardproof
