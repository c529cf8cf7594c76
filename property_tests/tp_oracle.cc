#include "property_tests/tp_oracle.h"

#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <sstream>

namespace shardproof {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

std::string Text(double value) {
  std::ostringstream text;
  text.precision(17);
  text << value;
  return text.str();
}

Matrix AsMatrix(const std::vector<float>& values, int64_t rows, int64_t cols) {
  Matrix out(rows, cols);
  for (int64_t i = 0; i < rows * cols; ++i)
    out(i / cols, i % cols) = static_cast<double>(values[static_cast<size_t>(i)]);
  return out;
}

Matrix Orthonormal(int64_t rows, int64_t cols, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  const Matrix drawn = Matrix::NullaryExpr(rows, cols, [&] { return normal(random); });
  return Eigen::HouseholderQR<Matrix>(drawn).householderQ() * Matrix::Identity(rows, cols);
}

// For each row of the logical matrix (all of Q, then K, then V) the row where ranks that lie one
// after the other have it.
std::vector<int64_t> LogicalRows(const TpMatrix& matrix, bool split_qkv, int32_t ranks) {
  const int64_t holders = matrix.dim == 0 ? ranks : 1;
  const int64_t parts = matrix.fused_qkv && split_qkv ? 3 : 1;
  const int64_t third = matrix.rows / holders / parts;
  std::vector<int64_t> rows;
  for (int64_t part = 0; part < parts; ++part) {
    for (int64_t rank = 0; rank < holders; ++rank) {
      for (int64_t i = 0; i < third; ++i) rows.push_back((rank * parts + part) * third + i);
    }
  }
  return rows;
}

std::vector<float> Gathered(const std::vector<float>& from, const std::vector<int64_t>& rows,
                            int64_t cols) {
  std::vector<float> out;
  for (int64_t row : rows) {
    const auto at = from.begin() + row * cols;
    out.insert(out.end(), at, at + cols);
  }
  return out;
}

std::vector<float> Scattered(const std::vector<float>& from, const std::vector<int64_t>& rows,
                             int64_t cols) {
  std::vector<float> out(from.size());
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy_n(from.begin() + static_cast<int64_t>(i) * cols, cols, out.begin() + rows[i] * cols);
  return out;
}

}  // namespace

std::map<std::string, std::string> KnobsOf(const MuonRule& rule, const std::string& mode) {
  return {{"lr", Text(rule.lr)},
          {"weight_decay", Text(rule.weight_decay)},
          {"muon_momentum", Text(rule.momentum)},
          {"muon_nesterov", rule.nesterov ? "1" : "0"},
          {"muon_coefficient_type", rule.coefficients},
          {"muon_num_ns_steps", std::to_string(rule.ns_steps)},
          {"muon_scale_mode", rule.scale_mode},
          {"muon_extra_scale_factor", Text(rule.extra_scale)},
          {"muon_split_qkv", rule.split_qkv ? "1" : "0"},
          {"muon_fp32_matmul_prec", rule.bf16 ? "medium" : "highest"},
          {"muon_eps", Text(rule.eps)},
          {"muon_tp_mode", mode}};
}

Stepped StepWhole(const MuonRule& rule, const TpMatrix& matrix, int32_t ranks) {
  const std::vector<int64_t> rows = LogicalRows(matrix, rule.split_qkv, ranks);
  Stepped out{Gathered(matrix.weight, rows, matrix.cols), std::vector<float>(matrix.weight.size())};
  for (const std::vector<float>& grad : matrix.grads) {
    UpdateMuon(rule, 1, {matrix.cols, matrix.rows, matrix.fused_qkv ? 1 : 0},
               Gathered(grad, rows, matrix.cols), out.momentum, out.weight);
  }
  return {Scattered(out.weight, rows, matrix.cols), Scattered(out.momentum, rows, matrix.cols)};
}

Stepped StepBlocks(const MuonRule& rule, const TpMatrix& matrix, int32_t ranks) {
  std::vector<std::vector<float>> weights, momenta;
  const auto shard = [&](const std::vector<float>& whole, int32_t rank) {
    return ShardOf(whole, matrix.rows, matrix.cols, matrix.dim, ranks, rank);
  };
  for (int32_t rank = 0; rank < ranks; ++rank) {
    TpMatrix block;
    block.rows = matrix.rows / (matrix.dim == 0 ? ranks : 1);
    block.cols = matrix.cols / (matrix.dim == 1 ? ranks : 1);
    block.fused_qkv = matrix.fused_qkv;
    block.weight = shard(matrix.weight, rank);
    for (const std::vector<float>& grad : matrix.grads) block.grads.push_back(shard(grad, rank));
    const Stepped stepped = StepWhole(rule, block, 1);
    weights.push_back(stepped.weight);
    momenta.push_back(stepped.momentum);
  }
  return {WholeOf(weights, matrix.rows, matrix.cols, matrix.dim),
          WholeOf(momenta, matrix.rows, matrix.cols, matrix.dim)};
}

std::vector<float> Conditioned(int64_t rows, int64_t cols, double least, uint64_t seed) {
  std::mt19937_64 random(seed);
  const int64_t rank = std::min(rows, cols);
  Eigen::VectorXd values(rank);
  const double steps = std::max(1.0, static_cast<double>(rank - 1));
  for (int64_t i = 0; i < rank; ++i)  // equal ratios
    values(i) = std::pow(least, static_cast<double>(i) / steps);
  const Matrix out = Orthonormal(rows, rank, random) * values.asDiagonal() *
                     Orthonormal(cols, rank, random).transpose();
  std::vector<float> narrow;
  for (int64_t i = 0; i < rows * cols; ++i)
    narrow.push_back(static_cast<float>(out(i / cols, i % cols)));
  return narrow;
}

double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    difference += (x - y) * (x - y);
    norm += y * y;
  }
  return std::sqrt(difference / norm);
}

double DistanceFromPolar(const std::vector<float>& orthogonalised, const std::vector<float>& u,
                         int64_t rows, int64_t cols) {
  const Eigen::JacobiSVD<Matrix> svd(AsMatrix(u, rows, cols),
                                     Eigen::ComputeThinU | Eigen::ComputeThinV);
  const Matrix polar = svd.matrixU() * svd.matrixV().transpose();
  const Matrix difference = AsMatrix(orthogonalised, rows, cols) - polar;
  return Eigen::JacobiSVD<Matrix>(difference).singularValues()(0);
}

Held HeldOf(const TpRequest& request, const TpAnswer& answer, size_t i) {
  const TpMatrix& matrix = request.matrices[i];
  const auto ranks = static_cast<size_t>(matrix.expert ? request.expert_tp : request.tp);
  std::vector<std::vector<float>> weights, momenta;
  Held held;
  for (size_t rank = 0; rank < answer.ranks.size(); ++rank) {
    const TpRank& one = answer.ranks[rank];
    if (one.weights.size() <= i || one.weights[i].empty()) continue;
    if (weights.size() < ranks) {
      weights.push_back(one.weights[i]);
      momenta.push_back(one.momenta[i]);
    }
    const size_t first = matrix.dim < 0 ? 0 : rank % ranks;
    if (first < weights.size() &&
        (one.weights[i] != weights[first] || one.momenta[i] != momenta[first]))
      held.contradiction += " " + std::to_string(i) + " on rank " + std::to_string(rank);
  }
  if (weights.size() < (matrix.dim < 0 ? 1 : ranks)) {  // ranks that were stopped
    held.contradiction += " nobody holds " + std::to_string(i);
    held.whole.weight.assign(matrix.weight.size(), std::numeric_limits<float>::quiet_NaN());
    held.whole.momentum = held.whole.weight;
    return held;
  }
  held.whole = {WholeOf(weights, matrix.rows, matrix.cols, matrix.dim),
                WholeOf(momenta, matrix.rows, matrix.cols, matrix.dim)};
  return held;
}

std::vector<float> WholeOf(const std::vector<std::vector<float>>& shards, int64_t rows,
                           int64_t cols, int32_t dim) {
  if (dim < 0) return shards.front();
  const auto ranks = static_cast<int64_t>(shards.size());
  std::vector<float> whole;
  for (int64_t i = 0; i < rows * cols; ++i) {
    const int64_t row = i / cols, col = i % cols;
    const int64_t part = dim == 0 ? rows / ranks : cols / ranks;
    const int64_t rank = (dim == 0 ? row : col) / part;
    const int64_t at = dim == 0 ? row % part * cols + col : row * part + col % part;
    whole.push_back(shards[static_cast<size_t>(rank)][static_cast<size_t>(at)]);
  }
  return whole;
}

}  // namespace shardproof
