// moe_grouped.h: the experts' activation function, times the probability of the row's choice.
#include "conformance/model/cuda/moe_grouped.h"
#include "conformance/model/cuda/reduce.h"

namespace shardproof::device {
namespace {

// silu(gate) * up of row i / ffn, as an operand that the probability multiplies.
struct Activation {
  Rules rules;
  Grid grid;
  const float* x = nullptr;  // [rows, 2 ffn]: gates, then ups
  int64_t ffn = 0;

  SHARDPROOF_KERNEL float At(int64_t i) const {
    const float *gate = x + i / ffn * 2 * ffn + i % ffn, *up = gate + ffn;
    return rules.Rounded(grid, *gate / (1.0f + Exp(-*gate)) * *up);
  }
};

}  // namespace

void GatedSwigluForward(Queue& queue, const Rules& rules, int64_t rows, int64_t ffn, const float* x,
                        const float* row_probs, float* y) {
  const Activation a{rules, grids::kActivation, x, ffn};
  ForEach(queue, "gated_swiglu", rows * ffn, [=] SHARDPROOF_KERNEL(int64_t i) {
    y[i] = a.rules.Rounded(a.grid, a.At(i) * row_probs[i / ffn]);
  });
}

void GatedSwigluDgrad(Queue& queue, const Rules& rules, int64_t rows, int64_t ffn, const float* x,
                      const float* row_probs, const float* dy, float* dx, float* drow_probs) {
  const Activation a{rules, grids::kActivation, x, ffn};
  RowSums(
      queue, "gated_swiglu_dprobs", rows, ffn,
      [=] SHARDPROOF_KERNEL(int64_t row, int64_t i) {
        return a.At(row * ffn + i) * dy[row * ffn + i];
      },
      drow_probs);
  Round(queue, rules, rules.Scaled(grids::kDRowProbability), drow_probs, rows);
  const Rules r = rules;
  const Grid grid = rules.Scaled(grids::kDExpertFc1);
  ForEach(queue, "gated_swiglu_dgrad", rows * ffn, [=] SHARDPROOF_KERNEL(int64_t i) {
    const int64_t at = i / ffn * 2 * ffn + i % ffn;
    const float gate = x[at], up = x[at + ffn], d = dy[i] * row_probs[i / ffn];
    const float sigmoid = 1.0f / (1.0f + Exp(-gate));
    const float silu = gate * sigmoid;
    dx[at] = r.Rounded(grid, d * up * (sigmoid + silu * (1.0f - sigmoid)));
    dx[at + ffn] = r.Rounded(grid, d * silu);
  });
}

}  // namespace shardproof::device
