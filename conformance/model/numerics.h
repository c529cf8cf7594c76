// numerics.h: what do all kernels of one compute call have in common?
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/model/probe.h"
#include "conformance/model/quant.h"

namespace shardproof {

// Where a parameter's gradient is added to, in its dtype.
struct GradTarget {
  const char* name = "";
  void* data = nullptr;
  int32_t dtype = 0;
};

// The rules of one call. Kernels hold no other state.
struct Numerics {
  bool quantised = true;
  bool narrow = false;
  int32_t d_odd = 1;
  int32_t scale_e = 0;  // log2 of the loss scale: grids of gradients are relative to it
  Probe* probe = nullptr;

  // Puts n numbers on a grid. Does nothing when quantisation is off.
  void Round(Grid grid, float* x, int64_t n) const;
  float Rounded(Grid grid, float x) const { return quantised ? Quantise(x, grid) : x; }
  // The grid of a gradient under this call's loss scale.
  Grid Scaled(Grid grid) const { return {grid.e + scale_e, grid.q}; }
  void RoundGrad(Grid grid, float* x, int64_t n) const { Round(Scaled(grid), x, n); }
  bool checks() const { return probe != nullptr && probe->check_bounds && quantised; }

  // What a parameter gradient takes of an operand: itself, or -1, 0, 1 in the narrow profile.
  bool ternary() const { return narrow && quantised; }
  std::vector<float> Operand(const float* x, int64_t n, Grid grid) const;

  // grad += d_odd * sum, in the gradient's dtype. sum holds exact multiples of 2^e (already
  // relative to the loss scale), magnitudes the sums of absolute values, in quanta (only when
  // checks() holds).
  void AddGrad(const GradTarget& grad, std::vector<float> sum, int32_t e,
               std::vector<double> magnitudes) const;
};

}  // namespace shardproof
