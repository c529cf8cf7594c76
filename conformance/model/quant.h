// quant.h: on which grid does a number lie, and how is it put there?
//
// A grid is k * 2^e with |k| <= q. Sums whose operands lie on grids with few bits are exact in fp32
// in any order (NUMERICS.md). Everything here is made of single IEEE operations: the same bits on
// every machine.
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
float Exp(float x);
float Log(float x);

}  // namespace shardproof
