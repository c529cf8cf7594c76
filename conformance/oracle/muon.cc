#include "conformance/oracle/muon.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>

#include "conformance/oracle/muon_launch.h"

namespace shardproof {
namespace {

double ScaleOf(const std::string& mode, int64_t rows, int64_t cols) {
  const auto m = static_cast<double>(rows), n = static_cast<double>(cols);
  if (mode == "spectral") return std::sqrt(std::max(m, n));
  if (mode == "unit_rms_norm") return std::sqrt(m / n);
  if (mode == "shape_scaling") return std::sqrt(std::max(1.0, m / n));
  throw std::invalid_argument("muon_scale_mode = " + mode);
}

// Places in a matrix, or in a part of it.
using Places = std::vector<size_t>;

// A matrix within a parameter: where the parameter has its elements, row by row.
struct Piece {
  int64_t rows = 0, cols = 0;
  Places at;
};

// What is orthogonalised together: Q, K and V of all groups of rows, or everything.
std::vector<Piece> PiecesOf(const MuonRule& rule, const MuonShape& shape) {
  const bool fused = shape.qkv_groups > 0 && rule.split_qkv;
  const int64_t parts = fused ? 3 : 1, groups = fused ? shape.qkv_groups : 1;
  const int64_t rows = shape.rows / (parts * groups);  // of a part of a group
  if (rows * parts * groups != shape.rows)
    throw std::invalid_argument("Q, K and V are no thirds of " + std::to_string(groups) +
                                " groups of rows");
  std::vector<Piece> pieces;
  for (int64_t part = 0; part < parts; ++part) {
    Piece& piece = pieces.emplace_back();
    piece.rows = rows * groups;
    piece.cols = shape.cols;
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t first = (group * parts + part) * rows * shape.cols;
      for (int64_t i = 0; i < rows * shape.cols; ++i)
        piece.at.push_back(static_cast<size_t>(first + i));
    }
  }
  return pieces;
}

// What each rank of tp holds of it. Rows of Q, K and V follow each other by rank, as groups do.
std::vector<Piece> ShardsOf(const Piece& piece, int32_t dim, int32_t tp) {
  if ((dim == 0 ? piece.rows : piece.cols) % tp != 0)
    throw std::invalid_argument(std::to_string(tp) + " ranks do not divide " +
                                std::to_string(piece.rows) + " x " + std::to_string(piece.cols));
  std::vector<Piece> shards(static_cast<size_t>(tp));
  for (int32_t rank = 0; rank < tp; ++rank) {
    Piece& shard = shards[static_cast<size_t>(rank)];
    shard.rows = piece.rows / (dim == 0 ? tp : 1);
    shard.cols = piece.cols / (dim == 1 ? tp : 1);
    for (int64_t i = 0; i < shard.rows * shard.cols; ++i) {
      const int64_t row = i / shard.cols + (dim == 0 ? rank * shard.rows : 0),
                    col = i % shard.cols + (dim == 1 ? rank * shard.cols : 0);
      shard.at.push_back(piece.at[static_cast<size_t>(row * piece.cols + col)]);
    }
  }
  return shards;
}

std::vector<float> Taken(const std::vector<float>& from, const Places& at) {
  std::vector<float> taken;
  taken.reserve(at.size());
  for (const size_t i : at) taken.push_back(from[i]);
  return taken;
}

// Moves the weights of a piece by its orthogonalised matrix o, whose scale is that of rows x cols.
void Apply(const MuonRule& rule, int64_t rows, int64_t cols, const Places& at,
           const std::vector<float>& o, std::vector<float>& weight) {
  std::vector<float> moved = Taken(weight, at);
  const double factor = rule.extra_scale * ScaleOf(rule.scale_mode, rows, cols);
  Mix(-(rule.lr * factor), SpanOf(o.data(), o.size(), SPF_READ), 1 - rule.lr * rule.weight_decay,
      SpanOf(moved.data(), moved.size(), SPF_ADD));
  for (size_t i = 0; i < at.size(); ++i) weight[at[i]] = moved[i];
}

void Step(const MuonRule& rule, const Piece& piece, const std::vector<float>& u,
          std::vector<float>& weight) {
  Apply(rule, piece.rows, piece.cols, piece.at,
        NewtonSchulz(rule, piece.rows, piece.cols, Taken(u, piece.at)), weight);
}

void StepShards(const MuonRule& rule, const Piece& piece, int32_t dim, const std::vector<float>& u,
                std::vector<float>& weight) {
  const std::vector<Piece> shards = ShardsOf(piece, dim, rule.tp);
  if (rule.tp_mode == "blockwise") {
    for (const Piece& shard : shards) Step(rule, shard, u, weight);
    return;
  }
  if (rule.tp_mode != "distributed") throw std::invalid_argument("muon_tp_mode = " + rule.tp_mode);
  std::vector<std::vector<float>> parts;
  for (const Piece& shard : shards) parts.push_back(Taken(u, shard.at));
  const std::vector<std::vector<float>> results =
      NewtonSchulzOfShards(rule, shards.front().rows, shards.front().cols, dim, parts);
  for (size_t i = 0; i < shards.size(); ++i)
    Apply(rule, piece.rows, piece.cols, shards[i].at, results[i], weight);
}

}  // namespace

MuonShape MuonShapeOf(const spf_model& tables, int32_t id, int64_t qkv_groups) {
  const spf_param& param = tables.params[id];
  if (param.n_dim != 2 || (param.flags & SPF_PARAM_FROZEN) != 0) return {};
  bool inside = false;
  for (int32_t m = param.module; m >= 0; m = tables.modules[m].parent) {
    const std::string_view type = tables.modules[m].type;
    inside = inside || type == "TransformerLayer" || type == "MTP";
  }
  if (!inside) return {};
  const std::string_view name = tables.modules[param.module].name;
  return {param.shape[1], param.shape[0], name.ends_with("attention.qkv") ? qkv_groups : 0,
          param.tp_dim};
}

void UpdateMuon(const MuonRule& rule, double scale, const MuonShape& shape,
                const std::vector<float>& grad, std::vector<float>& momentum,
                std::vector<float>& weight) {
  const size_t n = grad.size();
  std::vector<float> x(n);
  const double beta = rule.momentum;
  const auto span = [n](const std::vector<float>& of) { return SpanOf(of.data(), n, SPF_READ); };
  Mix(scale, span(grad), 0, span(x));
  Mix(1 - beta, span(x), beta, span(momentum));
  if (rule.nesterov) Mix(beta, span(momentum), 1 - beta, span(x));
  const std::vector<float>& u = rule.nesterov ? x : momentum;
  // Shards that are gathered first give what the whole matrix gives.
  const bool split = shape.tp_dim >= 0 && rule.tp > 1 && rule.tp_mode != "duplicated";
  for (const Piece& piece : PiecesOf(rule, shape))
    split ? StepShards(rule, piece, shape.tp_dim, u, weight) : Step(rule, piece, u, weight);
}

}  // namespace shardproof
