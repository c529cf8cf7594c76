#include "conformance/model/cuda/swiglu.h"

namespace shardproof::device {

void SwigluForward(const NodeContext& c) {
  const Rules rules = c.rules;
  const Grid grid = grids::kActivation;
  const int64_t width = c.d.ffn;
  const float* u = c.In(c.spec.in[0]);
  float* a = c.Out(c.spec.out[0]);
  ForEach(c.queue, "swiglu_forward", c.d.sequence * width, [=] SHARDPROOF_KERNEL(int64_t i) {
    const float* gate = u + i / width * 2 * width + i % width;
    a[i] = rules.Rounded(grid, SwigluOf(gate[0], gate[width]));
  });
}

void SwigluDgrad(const NodeContext& c) {
  const Rules rules = c.rules;
  const Grid grid = rules.Scaled(grids::kDFc1);
  const int64_t width = c.d.ffn;
  const float *u = c.In(c.spec.in[0]), *da = c.Grad(c.spec.out[0]);
  float* du = c.Grad(c.spec.in[0]);
  ForEach(c.queue, "swiglu_dgrad", c.d.sequence * width, [=] SHARDPROOF_KERNEL(int64_t i) {
    const int64_t at = i / width * 2 * width + i % width;
    const SwigluGrad grad = SwigluGradOf(u[at], u[at + width], da[i]);
    du[at] = rules.Rounded(grid, grad.gate);
    du[at + width] = rules.Rounded(grid, grad.up);
  });
}

}  // namespace shardproof::device
