// Newton-Schulz in the host's arithmetic against an fp64 singular value decomposition, and Muon's
// update against its formula.
//
// Bands: where the published coefficients take singular values of [0.01, 1] (of U / ||U||) in exact
// arithmetic. Rounding: at most 64 units of 2^-24 (fp32) or 8 of 2^-8 (bf16) of the result's
// Frobenius norm, on matrices whose singular values are all above 0.01.
#include "conformance/oracle/muon.h"

#include <gtest/gtest.h>

#include <Eigen/SVD>
#include <cmath>
#include <random>

#include "conformance/oracle/random_matrix_for_test.h"

namespace shardproof {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct Set {
  const char* name;
  int32_t steps;
  double low, high;
};
constexpr Set kSets[] = {{"quintic", 5, 0.978, 1.032},       {"quintic", 10, 0.978, 1.026},
                         {"simple", 5, 0.682, 1.134},        {"polar_express", 5, 0.870, 1.124},
                         {"polar_express", 8, 0.999, 1.001}, {"cans", 5, 0.884, 1.120},
                         {"deepseekv4", 10, 0.95, 1.05},     {"cubic5", 5, 0.774, 1.300}};

constexpr std::pair<int64_t, int64_t> kShapes[] = {{16, 48}, {48, 16}, {24, 24},
                                                   {5, 7},   {1, 8},   {8, 1}};

MuonRule RuleOf(const Set& set) {
  MuonRule rule;
  rule.coefficients = set.name;
  rule.ns_steps = set.steps;
  rule.eps = 0;
  return rule;
}

Matrix AsMatrix(const std::vector<float>& values, int64_t rows, int64_t cols) {
  Matrix out(rows, cols);
  for (int64_t i = 0; i < rows * cols; ++i)
    out(i / cols, i % cols) = static_cast<double>(values[static_cast<size_t>(i)]);
  return out;
}

struct Decomposed {
  Matrix left, right;      // thin, singular vectors as columns
  Eigen::VectorXd values;  // of U / ||U||
};
Decomposed Decompose(const std::vector<float>& u, int64_t rows, int64_t cols) {
  const Matrix matrix = AsMatrix(u, rows, cols);
  const Eigen::JacobiSVD<Matrix> svd(matrix, Eigen::ComputeThinU | Eigen::ComputeThinV);
  return {svd.matrixU(), svd.matrixV(), svd.singularValues() / matrix.norm()};
}

Matrix Compose(const Decomposed& parts, const Eigen::VectorXd& values) {
  return parts.left * values.asDiagonal() * parts.right.transpose();
}

double Spectral(const Matrix& matrix) {
  return Eigen::JacobiSVD<Matrix>(matrix).singularValues()(0);
}

// A random matrix all of whose singular values are above 0.01, so that the bands hold.
std::vector<float> WellConditioned(int64_t rows, int64_t cols) {
  for (uint64_t seed = 1;; ++seed) {
    std::vector<float> u = Random(rows, cols, seed);
    if (Decompose(u, rows, cols).values.minCoeff() > 0.01) return u;
  }
}

// What the polynomials of quintic or simple make of a singular value, in fp64.
double Mapped(const Set& set, double s) {
  static const std::vector<std::vector<double>> kQuintic{{4.0848, -6.8946, 2.9270},
                                                         {3.9505, -6.3029, 2.6377},
                                                         {3.7418, -5.5913, 2.3037},
                                                         {2.8769, -3.1427, 1.2046},
                                                         {2.8366, -3.0525, 1.2012}};
  const bool quintic = std::string(set.name) == "quintic";
  for (int32_t i = 0; i < set.steps; ++i) {
    const std::vector<double> f = quintic ? kQuintic[static_cast<size_t>(i % 5)]
                                          : std::vector<double>{3.4445, -4.7750, 2.0315};
    s = f[0] * s + f[1] * s * s * s + f[2] * std::pow(s, 5);
  }
  return s;
}

TEST(NewtonSchulzTest, SingularValuesLandInTheirBand) {
  for (const Set& set : kSets) {
    for (const auto& [rows, cols] : kShapes) {
      const std::vector<float> u = WellConditioned(rows, cols);
      const Matrix out = AsMatrix(NewtonSchulz(RuleOf(set), rows, cols, u), rows, cols);
      const Eigen::VectorXd values = Eigen::JacobiSVD<Matrix>(out).singularValues();
      EXPECT_GE(values.minCoeff(), set.low - 1e-3) << set.name << " " << rows << " x " << cols;
      EXPECT_LE(values.maxCoeff(), set.high + 1e-3) << set.name << " " << rows << " x " << cols;
    }
  }
}

TEST(NewtonSchulzTest, TheResultIsTheBandAwayFromThePolarFactor) {
  for (const Set& set : kSets) {
    for (const auto& [rows, cols] : kShapes) {
      const std::vector<float> u = WellConditioned(rows, cols);
      const Decomposed parts = Decompose(u, rows, cols);
      const Matrix polar = Compose(parts, Eigen::VectorXd::Ones(parts.values.size()));
      const Matrix out = AsMatrix(NewtonSchulz(RuleOf(set), rows, cols, u), rows, cols);
      EXPECT_LE(Spectral(out - polar), std::max(1 - set.low, set.high - 1) + 1e-3)
          << set.name << " " << rows << " x " << cols;
    }
  }
}

TEST(NewtonSchulzTest, RoundingStaysWithinItsBound) {
  for (const Set& set : {kSets[0], kSets[2]}) {
    for (const auto& [rows, cols] : kShapes) {
      const std::vector<float> u = WellConditioned(rows, cols);
      const Decomposed parts = Decompose(u, rows, cols);
      const Matrix exact =
          Compose(parts, parts.values.unaryExpr([&](double s) { return Mapped(set, s); }));
      MuonRule rule = RuleOf(set);
      const Matrix fp32 = AsMatrix(NewtonSchulz(rule, rows, cols, u), rows, cols);
      EXPECT_LE((fp32 - exact).norm() / exact.norm(), std::ldexp(64, -24))
          << set.name << " " << rows << " x " << cols;
      rule.bf16 = true;
      const Matrix bf16 = AsMatrix(NewtonSchulz(rule, rows, cols, u), rows, cols);
      const double error = (bf16 - exact).norm() / exact.norm();
      EXPECT_LE(error, std::ldexp(8, -8)) << set.name << " " << rows << " x " << cols;
      EXPECT_GT(error, std::ldexp(1, -16)) << "bf16 rounds";
    }
  }
}

TEST(NewtonSchulzTest, KnownValues) {
  const MuonRule rule = RuleOf(kSets[0]);
  const std::vector<float> identity = NewtonSchulz(rule, 2, 2, {1, 0, 0, 1});
  EXPECT_NEAR(identity[0], 1.025612, 2e-6);
  EXPECT_EQ(identity[1], 0);
  const std::vector<float> diagonal = NewtonSchulz(rule, 2, 2, {3, 0, 0, 1});
  EXPECT_NEAR(diagonal[0], 1.001967, 2e-6);
  EXPECT_NEAR(diagonal[3], 1.018868, 2e-6);
}

TEST(NewtonSchulzTest, ATransposedMatrixGivesTheTransposedResult) {
  for (const bool bf16 : {false, true}) {
    MuonRule rule = RuleOf(kSets[0]);
    rule.bf16 = bf16;
    const int64_t rows = 6, cols = 11;
    const std::vector<float> u = Random(rows, cols, 3);
    std::vector<float> turned(u.size());
    for (int64_t i = 0; i < rows * cols; ++i)
      turned[static_cast<size_t>(i % cols * rows + i / cols)] = u[static_cast<size_t>(i)];
    const std::vector<float> wide = NewtonSchulz(rule, rows, cols, u),
                             tall = NewtonSchulz(rule, cols, rows, turned);
    for (int64_t i = 0; i < rows * cols; ++i)
      EXPECT_EQ(wide[static_cast<size_t>(i)],
                tall[static_cast<size_t>(i % cols * rows + i / cols)]);
  }
}

TEST(NewtonSchulzTest, RotationsPassThrough) {
  const int64_t n = 12;
  const std::vector<float> u = WellConditioned(n, n);
  const Matrix q =
      Eigen::JacobiSVD<Matrix>(AsMatrix(Random(n, n, 5), n, n), Eigen::ComputeThinU).matrixU();
  const Matrix turned = q * AsMatrix(u, n, n);
  std::vector<float> narrow(u.size());
  for (int64_t i = 0; i < n * n; ++i)
    narrow[static_cast<size_t>(i)] = static_cast<float>(turned(i / n, i % n));
  const MuonRule rule = RuleOf(kSets[0]);
  const Matrix expected = q * AsMatrix(NewtonSchulz(rule, n, n, u), n, n);
  EXPECT_LE((AsMatrix(NewtonSchulz(rule, n, n, narrow), n, n) - expected).norm() / expected.norm(),
            std::ldexp(2048, -24));
}

TEST(NewtonSchulzTest, ZeroStaysZero) {
  for (double eps : {0.0, 0.0078125}) {
    MuonRule rule = RuleOf(kSets[0]);
    rule.eps = eps;
    EXPECT_EQ(NewtonSchulz(rule, 3, 4, std::vector<float>(12)), std::vector<float>(12));
  }
}

// Without eps nobody could see a gradient that is twice too large.
TEST(NewtonSchulzTest, EpsMakesTheScaleOfTheGradientVisible) {
  const std::vector<float> u = Random(16, 48, 7);
  std::vector<float> twice = u;
  for (float& value : twice) value *= 2;
  MuonRule rule = RuleOf(kSets[0]);
  EXPECT_EQ(NewtonSchulz(rule, 16, 48, u), NewtonSchulz(rule, 16, 48, twice));
  rule.eps = 0.0078125;
  const std::vector<float> a = NewtonSchulz(rule, 16, 48, u), b = NewtonSchulz(rule, 16, 48, twice);
  int64_t same = 0;
  for (size_t i = 0; i < a.size(); ++i) same += a[i] == b[i];
  EXPECT_LT(same, 16 * 48 / 20);
}

// --- the update

TEST(MuonUpdateTest, MomentumIsAnAverageAndDecayIsDecoupled) {
  MuonRule rule;
  rule.lr = 0.5;
  rule.weight_decay = 0.25;
  rule.momentum = 0.75;
  rule.extra_scale = 0.5;
  const MuonShape shape{4, 3, false};
  const std::vector<float> grad = Random(3, 4, 1), before = Random(3, 4, 2);
  for (const bool nesterov : {false, true}) {
    rule.nesterov = nesterov;
    std::vector<float> momentum(12, 1.0f), weight = before;
    UpdateMuon(rule, 0.5, shape, grad, momentum, weight);
    std::vector<float> u(12);
    for (size_t i = 0; i < 12; ++i) {
      const float m = 0.25f * (0.5f * grad[i]) + 0.75f;
      EXPECT_EQ(momentum[i], m);
      u[i] = nesterov ? 0.75f * m + 0.25f * (0.5f * grad[i]) : m;
    }
    const std::vector<float> o = NewtonSchulz(rule, 3, 4, u);
    for (size_t i = 0; i < 12; ++i)  // spectral scale: sqrt(4)
      EXPECT_EQ(weight[i], -(0.5f * 0.5f * 2) * o[i] + (1 - 0.125f) * before[i]);
  }
}

TEST(MuonUpdateTest, NoGradientLeavesOnlyTheDecay) {
  MuonRule rule;
  rule.lr = 0.5;
  rule.weight_decay = 0.25;
  std::vector<float> momentum(6), weight{1, 2, 3, 4, 5, 6};
  UpdateMuon(rule, 1, {3, 2, false}, std::vector<float>(6), momentum, weight);
  EXPECT_EQ(weight, (std::vector<float>{0.875, 1.75, 2.625, 3.5, 4.375, 5.25}));
}

TEST(MuonUpdateTest, QueriesKeysAndValuesAreThreeMatrices) {
  MuonRule rule;
  rule.lr = 0.5;
  rule.scale_mode = "unit_rms_norm";
  const std::vector<float> grad = Random(12, 5, 4);
  std::vector<float> momentum(60), weight(60), together_momentum(60), together(60);
  UpdateMuon(rule, 1, {5, 12, true}, grad, momentum, weight);
  for (int64_t part = 0; part < 3; ++part) {
    const auto from = grad.begin() + 20 * part;
    std::vector<float> own_momentum(20), own(20);
    UpdateMuon(rule, 1, {5, 4, false}, {from, from + 20}, own_momentum, own);
    EXPECT_TRUE(std::equal(own.begin(), own.end(), weight.begin() + 20 * part));
  }
  rule.split_qkv = false;
  UpdateMuon(rule, 1, {5, 12, true}, grad, together_momentum, together);
  EXPECT_NE(together, weight);
  EXPECT_EQ(together_momentum, momentum);
}

}  // namespace
}  // namespace shardproof
