#include "conformance/model/numerics.h"

#include <cmath>

#include "conformance/abi/shardproof.h"
#include "conformance/model/grids.h"
#include "conformance/model/model.h"

namespace shardproof {

void Numerics::Round(Grid grid, float* x, int64_t n) const {
  if (!quantised) return;
  if (probe != nullptr) {
    const float limit = static_cast<float>(grid.q) * PowerOfTwo(grid.e);
    int64_t outside = 0;
    for (int64_t i = 0; i < n; ++i) outside += x[i] > limit || x[i] < -limit;
    probe->quantised += n;
    probe->saturated += outside;
  }
  for (int64_t i = 0; i < n; ++i) x[i] = Quantise(x[i], grid);
}

std::vector<float> Numerics::Operand(const float* x, int64_t n, Grid grid) const {
  std::vector<float> operand(x, x + n);
  if (!ternary()) return operand;
  const Grid coarse{grid.e + grids::kNarrowShift, 1};
  const float unit = PowerOfTwo(-coarse.e);
  for (float& value : operand) value = Quantise(value, coarse) * unit;
  return operand;
}

void Numerics::AddGrad(const GradTarget& grad, std::vector<float> sum, int32_t e,
                       std::vector<double> magnitudes) const {
  const float unit = ternary() ? PowerOfTwo(grids::kNarrowQuantum + scale_e) : 1.0f;
  const float factor = unit * static_cast<float>(d_odd);
  for (float& value : sum) value = value * factor;
  if (checks()) {
    for (double& value : magnitudes) value *= d_odd;
    probe->AddToParam(grad.name, magnitudes, ternary() ? grids::kNarrowQuantum + scale_e : e,
                      narrow);
  }
  if (grad.dtype == SPF_BF16) {
    auto* out = static_cast<uint16_t*>(grad.data);
    for (size_t i = 0; i < sum.size(); ++i) out[i] = ToBf16(FromBf16(out[i]) + sum[i]);
  } else {
    auto* out = static_cast<float*>(grad.data);
    for (size_t i = 0; i < sum.size(); ++i) out[i] = out[i] + sum[i];
  }
}

}  // namespace shardproof
