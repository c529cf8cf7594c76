// swiglu.h: what does the MLP's activation function compute? silu(gate) * up, element by element.
#pragma once
#include "conformance/model/numerics.h"

namespace shardproof {

// u (rows, 2 * width): gates, then ups. a (rows, width).
void SwigluForward(const Numerics& n, int64_t rows, int64_t width, const float* u, float* a);
void SwigluDgrad(const Numerics& n, int64_t rows, int64_t width, const float* u, const float* da,
                 float* du);

}  // namespace shardproof
