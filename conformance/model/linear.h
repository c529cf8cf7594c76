// linear.h: what does a linear module compute? y = x W^T + b, its input gradient, its parameter
// gradients.
#pragma once
#include "conformance/model/numerics.h"

namespace shardproof {

struct LinearShape {
  int64_t tokens = 0, in = 0, out = 0;
};

// x (tokens, in), w (out, in), bias (out) or null; y (tokens, out) is the exact sum, not yet on a
// grid.
void LinearForward(const Numerics& n, const LinearShape& s, const float* x, const float* w,
                   const float* bias, float* y);
// dx (tokens, in) = dy w, the exact sum, not yet on a grid; and on the grid dx_grid.
void LinearDgradSum(const Numerics& n, const LinearShape& s, const float* dy, Grid dy_grid,
                    const float* w, float* dx);
void LinearDgrad(const Numerics& n, const LinearShape& s, const float* dy, Grid dy_grid,
                 const float* w, Grid dx_grid, float* dx);
// weight += dy^T x; the products of one token are exact, so tokens may be summed in any groups.
void LinearWgrad(const Numerics& n, const LinearShape& s, const float* x, const float* dy,
                 Grid dy_grid, const GradTarget& weight);
// bias += sum of dy over tokens.
void LinearBiasGrad(const Numerics& n, const LinearShape& s, const float* dy, Grid dy_grid,
                    const GradTarget& bias);

}  // namespace shardproof
