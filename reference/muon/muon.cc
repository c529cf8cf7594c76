#include "reference/muon/muon.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string_view>

namespace reference {

double ScaleOf(MuonScale scale, int64_t rows, int64_t cols) {
  const auto m = static_cast<double>(rows), n = static_cast<double>(cols);
  switch (scale) {
    case MuonScale::kSpectral:
      return std::sqrt(std::max(m, n));
    case MuonScale::kUnitRmsNorm:
      return std::sqrt(m / n);
    case MuonScale::kShapeScaling:
      return std::sqrt(std::max(1.0, m / n));
  }
  throw std::logic_error("unknown scale mode");
}

bool SteppedByMuon(const spf_model& model, int32_t id) {
  const spf_param& param = model.params[id];
  if (param.n_dim != 2 || (param.flags & SPF_PARAM_FROZEN) != 0) return false;
  for (int32_t m = param.module; m >= 0; m = model.modules[m].parent) {
    const std::string_view type = model.modules[m].type;
    if (type == "TransformerLayer" || type == "MTP") return true;
  }
  return false;
}

std::vector<bool> SteppedByMuon(const spf_model& model) {
  std::vector<bool> stepped;
  for (int32_t id = 0; id < model.n_params; ++id) stepped.push_back(SteppedByMuon(model, id));
  return stepped;
}

int64_t RowsOf(const MatrixPiece& piece) {
  return std::accumulate(piece.begin(), piece.end(), int64_t{0},
                         [](int64_t sum, const RowRange& range) { return sum + range.count; });
}

std::vector<MatrixPiece> SplitFused(int64_t rows, int64_t groups,
                                    const std::vector<int64_t>& rows_of_parts) {
  const int64_t width = std::accumulate(rows_of_parts.begin(), rows_of_parts.end(), int64_t{0});
  if (groups < 1 || width < 1 || groups * width != rows) {
    throw std::invalid_argument(std::to_string(rows) + " rows are not " + std::to_string(groups) +
                                " groups of " + std::to_string(width));
  }
  std::vector<MatrixPiece> pieces;
  int64_t part_begin = 0;
  for (int64_t count : rows_of_parts) {
    MatrixPiece& piece = pieces.emplace_back();
    for (int64_t g = 0; g < groups; ++g) piece.push_back({g * width + part_begin, count});
    part_begin += count;
  }
  return pieces;
}

}  // namespace reference
