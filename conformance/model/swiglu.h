// swiglu.h: what does the MLP's activation function compute? silu(gate) * up, element by element.
#pragma once
#include "conformance/model/numerics.h"

namespace shardproof {

struct SwigluShape {
  int64_t rows = 0, width = 0;
  bool pairs = false;  // u: gate and up of an element side by side; else gates, then ups

  int64_t step() const { return pairs ? 2 : 1; }    // from gate to gate
  int64_t up() const { return pairs ? 1 : width; }  // from gate to up
};

// u (rows, 2 * width). a (rows, width).
void SwigluForward(const Numerics& n, const SwigluShape& s, const float* u, float* a);
void SwigluDgrad(const Numerics& n, const SwigluShape& s, const float* u, const float* da,
                 float* du);

}  // namespace shardproof
