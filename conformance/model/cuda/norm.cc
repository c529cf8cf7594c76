#include "conformance/model/cuda/norm.h"

#include <cmath>

#include "conformance/model/cuda/reduce.h"

namespace shardproof::device {
namespace {

constexpr float kEpsilon = 0.0009765625f;  // 2^-10
constexpr float kGainUnit = 0.0625f;

// rms [sequence] of the rows of h.
void RootMeanSquares(const NodeContext& c, const float* h, float* rms) {
  const int64_t width = c.d.width;
  RowSums(
      c.queue, "norm_squares", c.Tokens(), width,
      [=] SHARDPROOF_KERNEL(int64_t row, int64_t i) {
        return h[row * width + i] * h[row * width + i];
      },
      rms);
  ForEach(c.queue, "norm_rms", c.Tokens(), [=] SHARDPROOF_KERNEL(int64_t row) {
    rms[row] = std::sqrt(rms[row] / static_cast<float>(width) + kEpsilon);
  });
}

}  // namespace

void NormForward(const NodeContext& c) {
  const Param param(c, c.spec.weight());
  const Scratch<float> scratch(c.queue, c.Tokens());
  const Rules rules = c.rules;
  const Grid grid = grids::kActivation;
  const int64_t width = c.d.width;
  const float *h = c.In(c.spec.in[0]), *weight = param.get();
  float *y = c.Out(c.spec.out[0]), *rms = scratch.get();
  RootMeanSquares(c, h, rms);
  ForEach(c.queue, "norm_forward", c.Tokens() * width, [=] SHARDPROOF_KERNEL(int64_t i) {
    const float x = rules.Rounded(grid, h[i] / rms[i / width]);
    y[i] = rules.Rounded(grid, x * weight[i % width]);
  });
}

void NormDgrad(const NodeContext& c) {
  const Param param(c, c.spec.weight());
  const OutGrad out_grad(c);
  const int64_t width = c.d.width, n = c.Tokens() * width;
  const Scratch<float> of_rms(c.queue, c.Tokens()), of_dot(c.queue, c.Tokens());
  const Scratch<float> of_x(c.queue, n), of_dx(c.queue, n);
  const Rules rules = c.rules;
  const Grid activation = grids::kActivation;
  const Grid normalised = rules.Scaled(grids::kDNormalised),
             residual = rules.Scaled(grids::kDResidual);
  const float *h = c.In(c.spec.in[0]), *weight = param.get(), *dy = out_grad.get();
  float *rms = of_rms.get(), *dot = of_dot.get(), *x = of_x.get(), *dx = of_dx.get();
  RootMeanSquares(c, h, rms);
  ForEach(c.queue, "norm_normalised", n, [=] SHARDPROOF_KERNEL(int64_t i) {
    x[i] = rules.Rounded(activation, h[i] / rms[i / width]);
    dx[i] = rules.Rounded(normalised, dy[i] * weight[i % width]);
  });
  RowSums(
      c.queue, "norm_dot", c.Tokens(), width,
      [=] SHARDPROOF_KERNEL(int64_t row, int64_t i) {
        return x[row * width + i] * dx[row * width + i];
      },
      dot);
  const bool add = c.spec.add_in[0];
  float* dh = c.Grad(c.spec.in[0]);
  ForEach(c.queue, "norm_dgrad", n, [=] SHARDPROOF_KERNEL(int64_t i) {
    const float mean = dot[i / width] / static_cast<float>(width);
    const float value = rules.Rounded(residual, (dx[i] - x[i] * mean) / rms[i / width]);
    dh[i] = add ? dh[i] + value : value;
  });
}

void NormWgrad(const NodeContext& c) {
  const OutGrad out_grad(c);
  const int64_t width = c.d.width;
  const Scratch<float> of_rms(c.queue, c.Tokens()), of_sums(c.queue, width);
  const Rules rules = c.rules;
  const Grid activation = grids::kActivation, grid = rules.Scaled(c.OutGradGrid());
  const float *h = c.In(c.spec.in[0]), *dy = out_grad.get();
  float *rms = of_rms.get(), *sums = of_sums.get();
  RootMeanSquares(c, h, rms);
  ColumnSums(
      c.queue, "norm_wgrad", c.Tokens(), width,
      [=] SHARDPROOF_KERNEL(int64_t row, int64_t i) {
        const float x = rules.Rounded(activation, h[row * width + i] / rms[row]);
        return rules.Operand(x, activation) * rules.Operand(dy[row * width + i], grid);
      },
      sums);
  AddGrad(c.queue, rules, c.Target(c.spec.weight()), sums, width);
}

namespace {

// to = from * (1 + gain / 16), on a grid.
void MultiplyByGain(const NodeContext& c, const float* from, Grid grid, float* to) {
  const Param param(c, c.spec.weight());
  const Rules rules = c.rules;
  const float* gain = param.get();
  ForEach(c.queue, "gain", c.Tokens() * c.d.width, [=] SHARDPROOF_KERNEL(int64_t i) {
    const float factor = 1.0f + kGainUnit * gain[0];
    to[i] = rules.Rounded(grid, from[i] * factor);
  });
}

}  // namespace

void GainForward(const NodeContext& c) {
  MultiplyByGain(c, c.In(c.spec.in[0]), grids::kActivation, c.Out(c.spec.out[0]));
}

void GainDgrad(const NodeContext& c) {
  MultiplyByGain(c, OutGrad(c).get(), c.rules.Scaled(grids::kDHeadIn), c.Grad(c.spec.in[0]));
}

void GainWgrad(const NodeContext& c) {
  const int64_t rows = c.Tokens(), width = c.d.width;
  const Scratch<float> of_dots(c.queue, rows), of_sum(c.queue, 1);
  const Rules rules = c.rules;
  const Grid grid = rules.Scaled(grids::kDGain);
  const OutGrad of_y(c);
  const float *x = c.In(c.spec.in[0]), *dy = of_y.get();
  float *dots = of_dots.get(), *sum = of_sum.get();
  RowSums(
      c.queue, "gain_dot", rows, width,
      [=] SHARDPROOF_KERNEL(int64_t row, int64_t i) {
        return x[row * width + i] * dy[row * width + i];
      },
      dots);
  RowSums(
      c.queue, "gain_wgrad", 1, rows,
      [=] SHARDPROOF_KERNEL(int64_t, int64_t row) {
        return rules.Operand(rules.Rounded(grid, kGainUnit * dots[row]), grid);
      },
      sum);
  AddGrad(c.queue, rules, c.Target(c.spec.weight()), sum, 1);
}

}  // namespace shardproof::device
