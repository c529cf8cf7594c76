#include "conformance/model/norm.h"

#include <cmath>

#include "conformance/model/grids.h"

namespace shardproof {
namespace {

constexpr float kEpsilon = 0.0009765625f;  // 2^-10
// A gain moves its input by an eighth at most: it cannot kill the network.
constexpr float kGainUnit = 0.0625f;

float Rms(const Numerics& n, const float* h, int64_t width) {
  float sum = 0;
  for (int64_t i = 0; i < width; ++i) sum = sum + h[i] * h[i];
  if (n.checks()) {
    n.probe->CheckOnGrid("norm: residual stream", h, width, grids::kResidual);
    n.probe->CheckTotal("norm: sum of squares", std::ldexp(sum, -2 * grids::kResidual.e));
  }
  return std::sqrt(sum / static_cast<float>(width) + kEpsilon);
}

// A row divided by its rms, on the activation grid.
void Normalise(const Numerics& n, const float* h, int64_t width, float* out) {
  const float rms = Rms(n, h, width);
  for (int64_t i = 0; i < width; ++i) out[i] = h[i] / rms;
  n.Round(grids::kActivation, out, width);
}

// Adds or stores a finished row.
void Emit(const std::vector<float>& row, bool add, float* out) {
  for (size_t i = 0; i < row.size(); ++i) out[i] = add ? out[i] + row[i] : row[i];
}

}  // namespace

void NormForward(const Numerics& n, const RowShape& s, const float* h, const float* weight,
                 float* y) {
  for (int64_t r = 0; r < s.rows; ++r) {
    float* out = y + r * s.width;
    Normalise(n, h + r * s.width, s.width, out);
    for (int64_t i = 0; i < s.width; ++i) out[i] = out[i] * weight[i];
    n.Round(grids::kActivation, out, s.width);
  }
}

void NormDgrad(const Numerics& n, const RowShape& s, const float* h, const float* weight,
               const float* dy, bool add, float* dh) {
  const auto width = static_cast<size_t>(s.width);
  std::vector<float> x(width), dx(width);
  for (int64_t r = 0; r < s.rows; ++r) {
    const float* row = h + r * s.width;
    Normalise(n, row, s.width, x.data());
    for (size_t i = 0; i < width; ++i)
      dx[i] = dy[r * s.width + static_cast<int64_t>(i)] * weight[i];
    n.RoundGrad(grids::kDNormalised, dx.data(), s.width);
    float dot = 0;
    double magnitude = 0;
    for (size_t i = 0; i < width; ++i) {
      dot = dot + x[i] * dx[i];
      magnitude += std::fabs(x[i] * dx[i]);
    }
    if (n.checks()) {
      n.probe->CheckTotal(
          "norm dgrad: dot",
          std::ldexp(magnitude, -grids::kActivation.e - n.Scaled(grids::kDNormalised).e));
    }
    const float mean = dot / static_cast<float>(s.width), rms = Rms(n, row, s.width);
    for (size_t i = 0; i < width; ++i) dx[i] = (dx[i] - x[i] * mean) / rms;
    n.RoundGrad(grids::kDResidual, dx.data(), s.width);
    Emit(dx, add, dh + r * s.width);
  }
}

void NormWgrad(const Numerics& n, const RowShape& s, const float* h, const float* dy, Grid dy_grid,
               const GradTarget& weight) {
  const auto width = static_cast<size_t>(s.width);
  const Grid grid = n.Scaled(dy_grid);
  std::vector<float> x(width), sum(width);
  std::vector<double> magnitudes(n.checks() ? width : 0);
  const int32_t e = n.ternary() ? 0 : grids::kActivation.e + grid.e;
  for (int64_t r = 0; r < s.rows; ++r) {
    Normalise(n, h + r * s.width, s.width, x.data());
    const std::vector<float> a = n.Operand(x.data(), s.width, grids::kActivation);
    const std::vector<float> b = n.Operand(dy + r * s.width, s.width, grid);
    for (size_t i = 0; i < width; ++i) {
      sum[i] = sum[i] + a[i] * b[i];
      if (n.checks()) magnitudes[i] += std::ldexp(std::fabs(a[i] * b[i]), -e);
    }
  }
  n.AddGrad(weight, std::move(sum), e, std::move(magnitudes));
}

void GainForward(const Numerics& n, const RowShape& s, const float* x, const float* gain,
                 float* y) {
  const float factor = 1.0f + kGainUnit * gain[0];
  for (int64_t i = 0; i < s.rows * s.width; ++i) y[i] = x[i] * factor;
  n.Round(grids::kActivation, y, s.rows * s.width);
}

void GainDgrad(const Numerics& n, const RowShape& s, const float* gain, const float* dy,
               float* dx) {
  const float factor = 1.0f + kGainUnit * gain[0];
  for (int64_t i = 0; i < s.rows * s.width; ++i) dx[i] = dy[i] * factor;
  n.RoundGrad(grids::kDHeadIn, dx, s.rows * s.width);
}

void GainWgrad(const Numerics& n, const RowShape& s, const float* x, const float* dy,
               const GradTarget& gain) {
  std::vector<float> rows(static_cast<size_t>(s.rows));
  for (int64_t r = 0; r < s.rows; ++r) {
    double magnitude = 0;
    float dot = 0;
    for (int64_t i = r * s.width; i < (r + 1) * s.width; ++i) {
      dot = dot + x[i] * dy[i];
      magnitude += std::fabs(x[i] * dy[i]);
    }
    if (n.checks()) {
      n.probe->CheckTotal(
          "gain: dot", std::ldexp(magnitude, -grids::kActivation.e - n.Scaled(grids::kDHeadIn).e));
    }
    rows[static_cast<size_t>(r)] = kGainUnit * dot;
  }
  const Grid grid = n.Scaled(grids::kDGain);
  n.Round(grid, rows.data(), s.rows);
  const std::vector<float> operand = n.Operand(rows.data(), s.rows, grid);
  const int32_t e = n.ternary() ? 0 : grid.e;
  float sum = 0;
  double magnitude = 0;
  for (float value : operand) {
    sum = sum + value;
    magnitude += std::ldexp(std::fabs(value), -e);
  }
  n.AddGrad(gain, {sum}, e, {magnitude});
}

}  // namespace shardproof
