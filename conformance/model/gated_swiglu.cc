// moe_kernels.h: the experts' activation function, times the probability of the row's choice.
#include <cmath>

#include "conformance/model/grids.h"
#include "conformance/model/moe_kernels.h"
#include "conformance/model/swiglu.h"

namespace shardproof {

void GatedSwigluForward(const Numerics& n, int64_t rows, int64_t ffn, const float* x,
                        const float* row_probs, float* y) {
  SwigluForward(n, {rows, ffn}, x, y);
  for (int64_t i = 0; i < rows * ffn; ++i) y[i] = y[i] * row_probs[i / ffn];
  n.Round(grids::kActivation, y, rows * ffn);
}

void GatedSwigluDgrad(const Numerics& n, int64_t rows, int64_t ffn, const float* x,
                      const float* row_probs, const float* dy, float* dx, float* drow_probs) {
  std::vector<float> a(static_cast<size_t>(rows * ffn)), da(a.size());
  SwigluForward(n, {rows, ffn}, x, a.data());
  if (n.checks()) {
    n.probe->CheckOnGrid("gated swiglu: dy", dy, rows * ffn, n.Scaled(grids::kDExpertAct));
    n.probe->CheckOnGrid("gated swiglu: probabilities", row_probs, rows, grids::kProbability);
  }
  for (int64_t r = 0; r < rows; ++r) {
    float dot = 0;
    double magnitude = 0;
    for (int64_t i = r * ffn; i < (r + 1) * ffn; ++i) {
      const auto at = static_cast<size_t>(i);
      dot = dot + a[at] * dy[i];
      magnitude += std::fabs(a[at] * dy[i]);
      da[at] = dy[i] * row_probs[r];
    }
    if (n.checks()) {
      n.probe->CheckTotal(
          "gated swiglu: gradient of a probability",
          std::ldexp(magnitude, -grids::kActivation.e - n.Scaled(grids::kDExpertAct).e));
    }
    drow_probs[r] = dot;
  }
  n.RoundGrad(grids::kDRowProbability, drow_probs, rows);
  static_assert(grids::kDExpertFc1.e == grids::kDFc1.e && grids::kDExpertFc1.q == grids::kDFc1.q);
  SwigluDgrad(n, {rows, ffn}, x, da.data(), dx);
}

}  // namespace shardproof
