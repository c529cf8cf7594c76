// quant.h: how does a value get onto a dyadic grid, and which functions stand between two sums?
//
// Everything is a fixed sequence of IEEE operations: the same bits on every machine (-ffp-contract=off).
#pragma once
#include <cstdint>

namespace shardproof {

// The values k * 2^exponent with integer |k| <= limit; limit < 2^22.
struct Grid {
  int32_t exponent = 0;
  float limit = 127;
  bool operator==(const Grid&) const = default;
};

// 2^exponent, exact.
float PowerOfTwo(int32_t exponent);

// Nearest grid value (ties to even), saturating. NaN stays NaN; never -0.
float Quantise(float x, const Grid& grid);

// exp on [-87, 87] (clamped), log of positive normal numbers; about 1 ulp.
float Exp(float x);
float Log(float x);

}  // namespace shardproof
