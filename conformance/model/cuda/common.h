// common.h: what do all device kernels of one compute call have in common?
//
// numerics.h and dispatch.h on the device: the same rules, the same operations in the same order,
// on device pointers.
#pragma once
#include <optional>

#include "conformance/cuda/for_each.h"
#include "conformance/cuda/queue.h"
#include "conformance/model/grids.h"
#include "conformance/model/model.h"
#include "conformance/model/network.h"
#include "conformance/model/node_grids.h"
#include "conformance/model/quant.h"

namespace shardproof::device {

// The rules of one call, as Numerics in numerics.h. Kernels capture them by value.
struct Rules {
  bool quantised = true, narrow = false;
  int32_t d_odd = 1;
  int32_t scale_e = 0;  // log2 of the loss scale: grids of gradients are relative to it

  constexpr float Rounded(Grid grid, float x) const { return quantised ? Quantise(x, grid) : x; }
  constexpr Grid Scaled(Grid grid) const { return {grid.e + scale_e, grid.q}; }
  constexpr float RoundedGrad(Grid grid, float x) const { return Rounded(Scaled(grid), x); }
  constexpr bool ternary() const { return narrow && quantised; }
  // What a parameter gradient takes of an operand on `grid`: itself, or -1, 0, 1 in the narrow
  // profile.
  constexpr float Operand(float x, Grid grid) const {
    if (!ternary()) return x;
    const int32_t e = grid.e + grids::kNarrowShift;
    return Quantise(x, {e, 1}) * PowerOfTwo(-e);
  }
  // What a sum of products of operands is multiplied by before it is added to a gradient.
  constexpr float GradFactor() const {
    return (ternary() ? PowerOfTwo(grids::kNarrowQuantum + scale_e) : 1.0f) *
           static_cast<float>(d_odd);
  }
};

// Where a parameter's gradient is added to, in its dtype.
struct GradTarget {
  void* data = nullptr;
  int32_t dtype = SPF_F32;
  GradTarget From(int64_t element) const {
    const int64_t size = dtype == SPF_BF16 ? 2 : 4;
    return {static_cast<std::byte*>(data) + element * size, dtype};
  }
};

// One compute call. Valid as long as RunNode's arguments are.
struct NodeContext {
  Queue& queue;
  const ModelConfig& config;
  const Network& network;
  const NodeArgs& args;  // tables on the host, of device pointers
  const NodeSpec& spec;
  const Dims& d;
  Rules rules;

  const float* In(int32_t value) const { return static_cast<const float*>(args.act[value]); }
  float* Out(int32_t value) const { return static_cast<float*>(args.act[value]); }
  int32_t* Integers(int32_t value) const { return static_cast<int32_t*>(args.act[value]); }
  int64_t* Counts(int32_t value) const { return static_cast<int64_t*>(args.act[value]); }
  float* Grad(int32_t value) const { return static_cast<float*>(args.dact[value]); }
  GradTarget Target(int32_t param) const { return {args.grad[param], args.grad_dtype}; }
  int64_t Width(int32_t value) const { return network.tables().values[value].row_elems; }
  int64_t Numel(int32_t param) const { return network.tables().params[param].numel; }
  int64_t Tokens() const { return network.TokensOf(spec); }
  int64_t FirstRow() const { return network.FirstRowOf(spec); }
  int64_t FirstToken() const { return network.FirstTokenOf(spec); }
  Grid OutGradGrid() const { return OutGradGridOf(network, spec); }
  Grid InGradGrid() const { return InGradGridOf(network, spec); }
};

// Throws std::invalid_argument for a scale that is no power of two, std::logic_error if the call
// has a probe.
NodeContext ContextOf(Queue& queue, const Model& model, const NodeArgs& args, ModelRank rank);

// Puts n numbers on a grid, in place or elsewhere.
void Round(Queue& queue, const Rules& rules, Grid grid, const float* from, float* to, int64_t n);
inline void Round(Queue& queue, const Rules& rules, Grid grid, float* x, int64_t n) {
  if (rules.quantised) Round(queue, rules, grid, x, x, n);
}

// Writes parameter `id` (at least 0) widened to fp32, on the grid on which nodes use it, to `to`
// [numel].
void WidenParam(const NodeContext& c, int32_t id, float* to);

// A parameter as nodes use it: its own memory where that holds just this, or temporary memory.
class Param {
 public:
  Param(const NodeContext& c, int32_t id);    // id -1: none
  const float* get() const { return data_; }  // null: none

 private:
  std::optional<Scratch<float>> copy_;
  const float* data_ = nullptr;
};

// The gradient of the node's output [tokens, width] as operand; that of the residual stream, and
// where several readers added to it, is requantised.
class OutGrad {
 public:
  explicit OutGrad(const NodeContext& c);
  const float* get() const { return data_; }

 private:
  std::optional<Scratch<float>> copy_;
  const float* data_ = nullptr;
};

// What parameter gradients take of x [n], which lies on `grid`: x itself, or a copy of -1, 0, 1.
class GradOperand {
 public:
  GradOperand(Queue& queue, const Rules& rules, const float* x, int64_t n, Grid grid);
  const float* get() const { return data_; }

 private:
  std::optional<Scratch<float>> copy_;
  const float* data_ = nullptr;
};

// grad[i] += GradFactor() * sum, in the gradient's dtype. For kernels.
SHARDPROOF_KERNEL inline void AddGradAt(const Rules& rules, GradTarget grad, int64_t i, float sum) {
  const float value = sum * rules.GradFactor();
  if (grad.dtype == SPF_BF16) {
    uint16_t& out = static_cast<uint16_t*>(grad.data)[i];
    out = ToBf16(FromBf16(out) + value);
  } else {
    float& out = static_cast<float*>(grad.data)[i];
    out = out + value;
  }
}
// The same for sums [n] in memory.
void AddGrad(Queue& queue, const Rules& rules, GradTarget grad, const float* sums, int64_t n);

}  // namespace shardproof::device
