#include "conformance/model/cuda/swiglu.h"

namespace shardproof::device {
namespace {

// Where gates and ups lie in a row: gates, then ups, or in pairs.
struct Gates {
  int64_t width;
  bool pairs;
  SHARDPROOF_KERNEL int64_t At(int64_t i) const {  // the gate of output i
    return i / width * 2 * width + i % width * (pairs ? 2 : 1);
  }
  SHARDPROOF_KERNEL int64_t up() const { return pairs ? 1 : width; }
};

Gates GatesOf(const NodeContext& c) {
  return {c.spec.split ? c.d.local_ffn() : c.d.ffn, c.spec.split};
}

}  // namespace

void SwigluForward(const NodeContext& c) {
  const Rules rules = c.rules;
  const Grid grid = grids::kActivation;
  const Gates gates = GatesOf(c);
  const float* u = c.In(c.spec.in[0]);
  float* a = c.Out(c.spec.out[0]);
  ForEach(c.queue, "swiglu_forward", c.Tokens() * gates.width, [=] SHARDPROOF_KERNEL(int64_t i) {
    const float* gate = u + gates.At(i);
    a[i] = rules.Rounded(grid, SwigluOf(gate[0], gate[gates.up()]));
  });
}

void SwigluDgrad(const NodeContext& c) {
  const Rules rules = c.rules;
  const Grid grid = rules.Scaled(grids::kDFc1);
  const Gates gates = GatesOf(c);
  const float *u = c.In(c.spec.in[0]), *da = c.Grad(c.spec.out[0]);
  float* du = c.Grad(c.spec.in[0]);
  ForEach(c.queue, "swiglu_dgrad", c.Tokens() * gates.width, [=] SHARDPROOF_KERNEL(int64_t i) {
    const int64_t at = gates.At(i), up = at + gates.up();
    const SwigluGrad grad = SwigluGradOf(u[at], u[up], da[i]);
    du[at] = rules.Rounded(grid, grad.gate);
    du[up] = rules.Rounded(grid, grad.up);
  });
}

}  // namespace shardproof::device
