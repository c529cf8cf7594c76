#include "conformance/model/swiglu.h"

#include "conformance/model/grids.h"

namespace shardproof {

void SwigluForward(const Numerics& n, const SwigluShape& s, const float* u, float* a) {
  for (int64_t r = 0; r < s.rows; ++r) {
    const float *gate = u + r * 2 * s.width, *up = gate + s.up();
    for (int64_t i = 0; i < s.width; ++i) {
      const float g = gate[i * s.step()];
      a[r * s.width + i] = g / (1.0f + Exp(-g)) * up[i * s.step()];
    }
  }
  n.Round(grids::kActivation, a, s.rows * s.width);
}

void SwigluDgrad(const Numerics& n, const SwigluShape& s, const float* u, const float* da,
                 float* du) {
  for (int64_t r = 0; r < s.rows; ++r) {
    const float *gate = u + r * 2 * s.width, *up = gate + s.up(), *d = da + r * s.width;
    float *dgate = du + r * 2 * s.width, *dup = dgate + s.up();
    for (int64_t i = 0; i < s.width; ++i) {
      const int64_t at = i * s.step();
      const float sigmoid = 1.0f / (1.0f + Exp(-gate[at]));
      const float silu = gate[at] * sigmoid;
      dgate[at] = d[i] * up[at] * (sigmoid + silu * (1.0f - sigmoid));
      dup[at] = d[i] * silu;
    }
  }
  n.RoundGrad(grids::kDFc1, du, s.rows * 2 * s.width);
}

}  // namespace shardproof
