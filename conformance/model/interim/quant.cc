#include "conformance/model/interim/quant.h"

#include <bit>
#include <initializer_list>

namespace shardproof {

float PowerOfTwo(int32_t exponent) { return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23); }

float Quantise(float x, const Grid& grid) {
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: adding and subtracting it rounds to an integer
  float s = x * PowerOfTwo(-grid.exponent);
  s = s > grid.limit ? grid.limit : s;
  s = s < -grid.limit ? -grid.limit : s;
  return ((s + kMagic) - kMagic) * PowerOfTwo(grid.exponent);
}

float Exp(float x) {
  if (!(x == x)) return x;
  x = x > 87.0f ? 87.0f : x;
  x = x < -87.0f ? -87.0f : x;
  // x = n ln 2 + r, ln 2 in two parts
  constexpr float kMagic = 12582912.0f, kLog2e = 1.44269504f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  const float n = (x * kLog2e + kMagic) - kMagic;
  float r = x - n * kLn2High;
  r = r - n * kLn2Low;
  float p = 1.9875691500e-4f;
  for (const float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f}) {
    p = p * r;
    p = p + c;
  }
  p = p * (r * r);
  p = p + r;
  p = p + 1.0f;
  return p * PowerOfTwo(static_cast<int32_t>(n));
}

float Log(float x) {
  if (!(x > 0.0f)) return x == 0.0f ? -PowerOfTwo(100) : x;
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  int32_t e = static_cast<int32_t>(bits >> 23) - 126;
  float m = std::bit_cast<float>((bits & 0x007FFFFFu) | 0x3F000000u);  // in [0.5, 1)
  if (m < 0.707106781f) {
    m = m + m;
    e = e - 1;
  }
  m = m - 1.0f;
  const float z = m * m;
  float p = 7.0376836292e-2f;
  for (const float c : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                        2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f}) {
    p = p * m;
    p = p + c;
  }
  p = p * m;
  p = p * z;
  const float fe = static_cast<float>(e);
  p = p + fe * -2.12194440e-4f;
  p = p - 0.5f * z;
  float r = m + p;
  return r + fe * 0.693359375f;
}

}  // namespace shardproof
