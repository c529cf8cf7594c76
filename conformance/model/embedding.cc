#include "conformance/model/embedding.h"

#include <cmath>
#include <limits>

#include "conformance/model/grids.h"

namespace shardproof {
namespace {

// Adds rows of dh to rows of a table; row_of(token) < 0: out of range, poisons row 0.
template <typename RowOf>
void AddRows(const Numerics& n, const EmbeddingShape& s, int64_t rows, const float* dh,
             RowOf row_of, const GradTarget& target) {
  const Grid grid = n.Scaled(grids::kDEmbedding);
  std::vector<float> rounded(dh, dh + s.tokens * s.width);
  n.Round(grid, rounded.data(), s.tokens * s.width);
  const std::vector<float> operand = n.Operand(rounded.data(), s.tokens * s.width, grid);
  const int32_t e = n.ternary() ? 0 : grid.e;
  std::vector<float> sum(static_cast<size_t>(rows * s.width));
  std::vector<double> magnitudes(n.checks() ? sum.size() : 0);
  for (int64_t t = 0; t < s.tokens; ++t) {
    const int64_t row = row_of(t);
    if (row < 0) {
      sum[0] = std::numeric_limits<float>::quiet_NaN();
      continue;
    }
    for (int64_t i = 0; i < s.width; ++i) {
      const auto at = static_cast<size_t>(row * s.width + i);
      const float value = operand[static_cast<size_t>(t * s.width + i)];
      sum[at] = sum[at] + value;
      if (n.checks()) magnitudes[at] += std::ldexp(std::fabs(value), -e);
    }
  }
  n.AddGrad(target, std::move(sum), e, std::move(magnitudes));
}

bool Known(const EmbeddingShape& s, int32_t token) { return token >= 0 && token < s.vocab; }

}  // namespace

void EmbeddingForward(const Numerics& n, const EmbeddingShape& s, const int32_t* tokens,
                      const float* weight, const float* position, float* h) {
  for (int64_t t = 0; t < s.tokens; ++t) {
    for (int64_t i = 0; i < s.width; ++i) {
      const float value = Known(s, tokens[t]) ? weight[tokens[t] * s.width + i]
                                              : std::numeric_limits<float>::quiet_NaN();
      h[t * s.width + i] =
          position == nullptr ? value : value + position[(s.first + t) * s.width + i];
    }
  }
  n.Round(grids::kResidual, h, s.tokens * s.width);
}

void EmbeddingWgrad(const Numerics& n, const EmbeddingShape& s, const int32_t* tokens,
                    const float* dh, const GradTarget& weight) {
  AddRows(
      n, s, s.vocab, dh, [&](int64_t t) { return Known(s, tokens[t]) ? int64_t{tokens[t]} : -1; },
      weight);
}

void PositionWgrad(const Numerics& n, const EmbeddingShape& s, const float* dh,
                   const GradTarget& position) {
  AddRows(
      n, s, s.positions, dh, [&](int64_t t) { return s.first + t; }, position);
}

}  // namespace shardproof
