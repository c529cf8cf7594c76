#include "conformance/model/linear.h"

#include <Eigen/Core>
#include <cmath>

#include "conformance/model/grids.h"

namespace shardproof {
namespace {

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Map = Eigen::Map<const Matrix<float>>;

Matrix<double> Magnitudes(const Map& m, int32_t e) {
  return m.cwiseAbs().cast<double>() * std::ldexp(1.0, -e);
}

// All sums of a matrix product: operands on their grids, totals below the bound.
template <typename Product>
void CheckTotals(const Numerics& n, const char* sum, const Product& totals) {
  const Matrix<double> all = totals;
  for (Eigen::Index i = 0; i < all.size(); ++i) n.probe->CheckTotal(sum, all.data()[i]);
}

}  // namespace

void LinearForward(const Numerics& n, const LinearShape& s, const float* x, const float* w,
                   const float* bias, float* y) {
  const Map xm(x, s.tokens, s.in), wm(w, s.out, s.in);
  Eigen::Map<Matrix<float>> ym(y, s.tokens, s.out);
  ym.noalias() = xm * wm.transpose();
  if (bias != nullptr) ym.rowwise() += Eigen::Map<const Eigen::RowVectorXf>(bias, s.out);
  if (!n.checks()) return;
  n.probe->CheckOnGrid("linear: input", x, xm.size(), grids::kActivation);
  n.probe->CheckOnGrid("linear: weight", w, wm.size(), grids::kWeight);
  const double largest_bias =
      bias == nullptr ? 0 : std::ldexp(grids::kWeight.q, -grids::kActivation.e);
  CheckTotals(n, "linear forward",
              (Magnitudes(xm, grids::kActivation.e) * Magnitudes(wm, grids::kWeight.e).transpose())
                      .array() +
                  largest_bias);
}

void LinearDgradSum(const Numerics& n, const LinearShape& s, const float* dy, Grid dy_grid,
                    const float* w, float* dx) {
  const Map dym(dy, s.tokens, s.out), wm(w, s.out, s.in);
  Eigen::Map<Matrix<float>>(dx, s.tokens, s.in).noalias() = dym * wm;
  if (n.checks()) {
    const Grid grid = n.Scaled(dy_grid);
    n.probe->CheckOnGrid("linear dgrad: dy", dy, dym.size(), grid);
    CheckTotals(n, "linear dgrad", Magnitudes(dym, grid.e) * Magnitudes(wm, grids::kWeight.e));
  }
}

void LinearDgrad(const Numerics& n, const LinearShape& s, const float* dy, Grid dy_grid,
                 const float* w, Grid dx_grid, float* dx) {
  LinearDgradSum(n, s, dy, dy_grid, w, dx);
  n.RoundGrad(dx_grid, dx, s.tokens * s.in);
}

void LinearWgrad(const Numerics& n, const LinearShape& s, const float* x, const float* dy,
                 Grid dy_grid, const GradTarget& weight) {
  const Grid grid = n.Scaled(dy_grid);
  const std::vector<float> x_operand = n.Operand(x, s.tokens * s.in, grids::kActivation);
  const std::vector<float> dy_operand = n.Operand(dy, s.tokens * s.out, grid);
  const Map xm(x_operand.data(), s.tokens, s.in), dym(dy_operand.data(), s.tokens, s.out);
  std::vector<float> sum(static_cast<size_t>(s.out * s.in));
  Eigen::Map<Matrix<float>>(sum.data(), s.out, s.in).noalias() = dym.transpose() * xm;
  std::vector<double> magnitudes;
  const int32_t x_e = n.ternary() ? 0 : grids::kActivation.e, dy_e = n.ternary() ? 0 : grid.e;
  if (n.checks()) {
    n.probe->CheckOnGrid("linear wgrad: x", xm.data(), xm.size(), {x_e, grids::kActivation.q});
    n.probe->CheckOnGrid("linear wgrad: dy", dym.data(), dym.size(), {dy_e, grid.q});
    magnitudes.resize(sum.size());
    Eigen::Map<Matrix<double>>(magnitudes.data(), s.out, s.in) =
        Magnitudes(dym, dy_e).transpose() * Magnitudes(xm, x_e);
  }
  n.AddGrad(weight, std::move(sum), x_e + dy_e, std::move(magnitudes));
}

void LinearBiasGrad(const Numerics& n, const LinearShape& s, const float* dy, Grid dy_grid,
                    const GradTarget& bias) {
  const Grid grid = n.Scaled(dy_grid);
  const std::vector<float> operand = n.Operand(dy, s.tokens * s.out, grid);
  const auto width = static_cast<size_t>(s.out);
  const int32_t e = n.ternary() ? 0 : grid.e;
  std::vector<float> sum(width);
  std::vector<double> magnitudes(n.checks() ? width : 0);
  for (size_t i = 0; i < operand.size(); ++i) {
    sum[i % width] += operand[i];
    if (n.checks()) magnitudes[i % width] += std::ldexp(std::fabs(operand[i]), -e);
  }
  n.AddGrad(bias, std::move(sum), e, std::move(magnitudes));
}

}  // namespace shardproof
