#include "conformance/model/swiglu.h"

#include "conformance/model/grids.h"

namespace shardproof {

void SwigluForward(const Numerics& n, int64_t rows, int64_t width, const float* u, float* a) {
  for (int64_t r = 0; r < rows; ++r) {
    const float *gate = u + r * 2 * width, *up = gate + width;
    for (int64_t i = 0; i < width; ++i) a[r * width + i] = gate[i] / (1.0f + Exp(-gate[i])) * up[i];
  }
  n.Round(grids::kActivation, a, rows * width);
}

void SwigluDgrad(const Numerics& n, int64_t rows, int64_t width, const float* u, const float* da,
                 float* du) {
  for (int64_t r = 0; r < rows; ++r) {
    const float *gate = u + r * 2 * width, *up = gate + width, *d = da + r * width;
    float *dgate = du + r * 2 * width, *dup = dgate + width;
    for (int64_t i = 0; i < width; ++i) {
      const float sigmoid = 1.0f / (1.0f + Exp(-gate[i]));
      const float silu = gate[i] * sigmoid;
      dgate[i] = d[i] * up[i] * (sigmoid + silu * (1.0f - sigmoid));
      dup[i] = d[i] * silu;
    }
  }
  n.RoundGrad(grids::kDFc1, du, rows * 2 * width);
}

}  // namespace shardproof
