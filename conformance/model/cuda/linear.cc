#include "conformance/model/cuda/linear.h"

#include "conformance/model/cuda/reduce.h"

namespace shardproof::device {
namespace {

bool IsConcat(const NodeContext& c) { return c.spec.op == Op::kConcatLinear; }
int64_t InWidth(const NodeContext& c) {
  return IsConcat(c) ? 2 * c.d.width : c.Width(c.spec.in[0]);
}
int64_t OutWidth(const NodeContext& c) { return c.Width(c.spec.out[0]); }

// [sequence, 2 width]: left and right input side by side.
void Concatenate(const NodeContext& c, float* both) {
  const int64_t width = c.d.width;
  const float *left = c.In(c.spec.in[0]), *right = c.In(c.spec.in[1]);
  ForEach(c.queue, "concatenate", c.d.sequence * 2 * width, [=] SHARDPROOF_KERNEL(int64_t i) {
    const int64_t row = i / (2 * width), column = i % (2 * width);
    both[i] = column < width ? left[row * width + column] : right[row * width + column - width];
  });
}

// The input [tokens, in]: a value as it is, from the first row that the node takes, or two of them
// side by side in temporary memory.
class Input {
 public:
  explicit Input(const NodeContext& c) {
    if (!IsConcat(c)) {
      data_ = c.In(c.spec.in[0]) + c.FirstRow() * InWidth(c);
      return;
    }
    both_.emplace(c.queue, c.d.sequence * InWidth(c));
    data_ = both_->get();
    Concatenate(c, both_->get());
  }
  const float* get() const { return data_; }

 private:
  std::optional<Scratch<float>> both_;
  const float* data_ = nullptr;
};

// What follows the product, element by element. Logits are exact sums; nothing multiplies them.
void FinishForward(const NodeContext& c, const float* bias, float* y) {
  const bool residual = c.spec.op == Op::kLinearResidual;
  const bool stream = residual || IsConcat(c);
  Rules rules = c.rules;
  // Of a summand over tensor-parallel ranks the grid follows the sum.
  if ((c.spec.head && !residual) || c.spec.op == Op::kRowLinear) rules.quantised = false;
  if (bias == nullptr && !residual && !rules.quantised) return;
  const Grid grid = stream ? grids::kResidual : grids::kActivation;
  const int64_t out = OutWidth(c);
  const float* h = residual ? c.In(c.spec.in[1]) : nullptr;
  ForEach(c.queue, "linear_forward", c.Tokens() * out, [=] SHARDPROOF_KERNEL(int64_t i) {
    float value = y[i];
    if (bias != nullptr) value = value + bias[i % out];
    if (h != nullptr) value = h[i] + value;
    y[i] = rules.Rounded(grid, value);
  });
}

// dx [tokens, in] = dy w, exact sums.
void MultiplyByWeight(const NodeContext& c, float* dx) {
  const OutGrad dy(c);
  const Param weight(c, c.spec.weight());
  Gemm gemm;
  gemm.m = c.Tokens();
  gemm.n = InWidth(c);
  gemm.k = OutWidth(c);
  gemm.a = dy.get();
  gemm.b = weight.get();
  gemm.c = dx;
  c.queue.Multiply(gemm);
}

void InputDgrad(const NodeContext& c) {
  const int64_t n = c.Tokens() * InWidth(c);
  Rules rules = c.rules;
  if (c.spec.op == Op::kColumnLinear) rules.quantised = false;
  const Grid grid = rules.Scaled(c.InGradGrid());
  float* dx = c.Grad(c.spec.in[0]) + c.FirstRow() * InWidth(c);
  if (!c.spec.add_in[0]) {
    MultiplyByWeight(c, dx);
    return Round(c.queue, rules, grid, dx, n);
  }
  const Scratch<float> scratch(c.queue, n);
  float* own = scratch.get();
  MultiplyByWeight(c, own);
  ForEach(c.queue, "linear_dgrad", n,
          [=] SHARDPROOF_KERNEL(int64_t i) { dx[i] = dx[i] + rules.Rounded(grid, own[i]); });
}

void ResidualDgrad(const NodeContext& c) {
  const Rules rules = c.rules;
  const Grid grid = rules.Scaled(grids::kDResidual);
  const bool add = c.spec.add_in[1];
  const float* dy = c.Grad(c.spec.out[0]);
  float* dh = c.Grad(c.spec.in[1]);
  ForEach(c.queue, "residual_dgrad", c.Tokens() * c.d.width, [=] SHARDPROOF_KERNEL(int64_t i) {
    const float value = rules.Rounded(grid, dy[i]);
    dh[i] = add ? dh[i] + value : value;
  });
}

// One half of dboth [sequence, 2 width].
void TakeSide(const NodeContext& c, const float* dboth, int64_t side) {
  const Rules rules = c.rules;
  const Grid grid = rules.Scaled(grids::kDNormOut);
  const int64_t width = c.d.width;
  float* dx = c.Grad(c.spec.in[static_cast<size_t>(side)]);
  ForEach(c.queue, "concat_dgrad", c.d.sequence * width, [=] SHARDPROOF_KERNEL(int64_t i) {
    dx[i] = rules.Rounded(grid, dboth[(i / width * 2 + side) * width + i % width]);
  });
}

void WeightGrad(const NodeContext& c, const float* dy) {
  const int64_t tokens = c.Tokens(), in = InWidth(c), out = OutWidth(c);
  const Rules& rules = c.rules;
  const GradTarget target = c.Target(c.spec.weight());
  const Input input(c);
  const GradOperand x_operand(c.queue, rules, input.get(), tokens * in, grids::kActivation);
  const GradOperand dy_operand(c.queue, rules, dy, tokens * out, rules.Scaled(c.OutGradGrid()));
  Gemm gemm;
  gemm.m = out;
  gemm.n = in;
  gemm.k = tokens;
  gemm.a = dy_operand.get();
  gemm.a_transposed = true;
  gemm.b = x_operand.get();
  if (target.dtype == SPF_F32 && rules.GradFactor() == 1.0f) {
    gemm.c = static_cast<float*>(target.data);
    gemm.add = true;
    return c.queue.Multiply(gemm);
  }
  const Scratch<float> sums(c.queue, out * in);
  gemm.c = sums.get();
  c.queue.Multiply(gemm);
  AddGrad(c.queue, rules, target, sums.get(), out * in);
}

void BiasGrad(const NodeContext& c, const float* dy) {
  const int64_t out = OutWidth(c);
  const Rules rules = c.rules;
  const Grid grid = rules.Scaled(c.OutGradGrid());
  const Scratch<float> sums(c.queue, out);
  ColumnSums(
      c.queue, "bias_grad", c.Tokens(), out,
      [=] SHARDPROOF_KERNEL(int64_t row, int64_t i) {
        return rules.Operand(dy[row * out + i], grid);
      },
      sums.get());
  AddGrad(c.queue, rules, c.Target(c.spec.bias()), sums.get(), out);
}

}  // namespace

void LinearForward(const NodeContext& c) {
  const Param weight(c, c.spec.weight()), bias(c, c.spec.bias());
  const Input input(c);
  Gemm gemm;
  gemm.m = c.Tokens();
  gemm.n = OutWidth(c);
  gemm.k = InWidth(c);
  gemm.a = input.get();
  gemm.b = weight.get();
  gemm.b_transposed = true;
  gemm.c = c.Out(c.spec.out[0]);
  c.queue.Multiply(gemm);
  FinishForward(c, bias.get(), gemm.c);
}

void LinearDgrad(const NodeContext& c) {
  if (c.spec.grad_in[0]) InputDgrad(c);
  if (c.spec.grad_in[1]) ResidualDgrad(c);
}

void ResidualAddForward(const NodeContext& c) {
  const Param bias_param(c, c.spec.bias());
  const Rules rules = c.rules;
  const Grid grid = grids::kResidual;
  const int64_t width = c.d.width;
  const float *bias = bias_param.get(), *sum = c.In(c.spec.in[0]), *h = c.In(c.spec.in[1]);
  float* y = c.Out(c.spec.out[0]);
  ForEach(c.queue, "residual_add", c.Tokens() * width, [=] SHARDPROOF_KERNEL(int64_t i) {
    const float x = bias != nullptr ? sum[i] + bias[i % width] : sum[i];
    y[i] = rules.Rounded(grid, h[i] + x);
  });
}

void ResidualAddDgrad(const NodeContext& c) {
  const int64_t n = c.Tokens() * c.d.width;
  const Grid grid = c.rules.Scaled(c.OutGradGrid());
  if (c.spec.grad_in[0])
    Round(c.queue, c.rules, grid, c.Grad(c.spec.out[0]), c.Grad(c.spec.in[0]), n);
  if (c.spec.grad_in[1]) ResidualDgrad(c);
}

void ConcatDgrad(const NodeContext& c) {
  const Scratch<float> dboth(c.queue, c.d.sequence * InWidth(c));
  MultiplyByWeight(c, dboth.get());
  for (int64_t side = 0; side < 2; ++side) {
    if (c.spec.grad_in[static_cast<size_t>(side)]) TakeSide(c, dboth.get(), side);
  }
}

void LinearWgrad(const NodeContext& c) {
  const OutGrad dy(c);
  if (c.spec.grad_weight) WeightGrad(c, dy.get());
  if (c.spec.grad_bias) BiasGrad(c, dy.get());
}

}  // namespace shardproof::device
