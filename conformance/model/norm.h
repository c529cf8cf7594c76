// norm.h: what do RMSNorm and the scalar gain compute?
#pragma once
#include "conformance/model/numerics.h"

namespace shardproof {

struct RowShape {
  int64_t rows = 0, width = 0;
};

// y = (h / rms(h)) * weight, rms over a row. h is on the residual grid, y on the activation grid.
void NormForward(const Numerics& n, const RowShape& s, const float* h, const float* weight,
                 float* y);
// dh += or = gradient of h, on the residual gradient's grid (add: several nodes add to it).
void NormDgrad(const Numerics& n, const RowShape& s, const float* h, const float* weight,
               const float* dy, bool add, float* dh);
// weight += sum over rows of dy * (h / rms(h)). dy lies on dy_grid.
void NormWgrad(const Numerics& n, const RowShape& s, const float* h, const float* dy, Grid dy_grid,
               const GradTarget& weight);

// y = x * (1 + gain[0] / 16).
void GainForward(const Numerics& n, const RowShape& s, const float* x, const float* gain, float* y);
void GainDgrad(const Numerics& n, const RowShape& s, const float* gain, const float* dy, float* dx);
// gain += sum over rows of (sum over the row of x * dy / 16, on a grid).
void GainWgrad(const Numerics& n, const RowShape& s, const float* x, const float* dy,
               const GradTarget& gain);

}  // namespace shardproof
