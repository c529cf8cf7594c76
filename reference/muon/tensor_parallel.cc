#include "reference/muon/tensor_parallel.h"

#include <stdexcept>
#include <string_view>

namespace reference {

ShardPlan PlanShard(MuonTpMode mode, const TpSplit& split, int64_t rows, int64_t cols,
                    const std::vector<NewtonSchulzStep>& steps, double eps, spf_dtype dtype) {
  const int64_t whole_rows = split.dim == 0 ? rows * split.ranks : rows,
                whole_cols = split.dim == 1 ? cols * split.ranks : cols;
  switch (mode) {
    case MuonTpMode::kDuplicated:
      return {true, PlanNewtonSchulz(whole_rows, whole_cols, steps, eps, dtype), whole_rows,
              whole_cols};
    case MuonTpMode::kDistributed:
      return {false, PlanNewtonSchulzOfShard(rows, cols, split.dim, steps, eps, dtype), whole_rows,
              whole_cols};
    case MuonTpMode::kBlockwise:
      return {false, PlanNewtonSchulz(rows, cols, steps, eps, dtype), rows, cols};
  }
  throw std::logic_error("unknown mode of tensor parallelism");
}

std::vector<MatrixPiece> PiecesOfShard(const std::string& name, int64_t rows, int64_t groups,
                                       const std::vector<int64_t>& rows_of_parts,
                                       const TpSplit& split) {
  const int64_t holders = split.dim == 0 ? split.ranks : 1;
  try {
    if (groups % holders != 0) {
      throw std::invalid_argument(std::to_string(holders) + " ranks cut one of its " +
                                  std::to_string(groups) + " groups of rows");
    }
    return SplitFused(rows, groups / holders, rows_of_parts);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(name + ": " + error.what());
  }
}

std::vector<MatrixPiece> PiecesOf(const spf_model& model, int32_t id, const MuonOptions& options,
                                  const TpSplit& split) {
  const spf_param& param = model.params[id];
  const std::string_view module = model.modules[param.module].name;
  const int64_t rows = param.shape[0];
  if (!options.split_qkv || !module.ends_with("attention.qkv")) return {{{0, rows}}};
  const int64_t holders = split.dim == 0 ? split.ranks : 1;
  const int64_t groups = options.heads > 0 ? options.heads : holders;
  const int64_t third = rows * holders / groups / 3;
  return PiecesOfShard(param.name, rows, groups, {third, third, third}, split);
}

std::vector<BlockMove> PutTogether(const TpSplit& split, int64_t rows, int64_t cols) {
  std::vector<BlockMove> moves;
  if (split.dim != 1) return moves;
  for (int64_t r = 0; r < split.ranks; ++r) {
    for (int64_t i = 0; i < rows; ++i)
      moves.push_back({(r * rows + i) * cols, (i * split.ranks + r) * cols, cols});
  }
  return moves;
}

std::vector<BlockMove> OwnPart(const TpSplit& split, const MatrixPiece& piece, int64_t cols) {
  std::vector<BlockMove> moves;
  const int64_t before = split.dim == 0 ? split.rank * RowsOf(piece) : 0;
  int64_t row = before;  // of the whole matrix
  for (const RowRange& range : piece) {
    if (split.dim != 1) {
      moves.push_back({row * cols, range.begin * cols, range.count * cols});
      row += range.count;
      continue;
    }
    for (int64_t i = range.begin; i < range.begin + range.count; ++i, ++row)
      moves.push_back({(row * split.ranks + split.rank) * cols, i * cols, cols});
  }
  return moves;
}

}  // namespace reference
