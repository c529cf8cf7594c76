#include "conformance/model/embedding.h"

#include <cmath>
#include <limits>

#include "conformance/model/grids.h"

namespace shardproof {
namespace {

constexpr int64_t kElsewhere = -2;  // in place of a row: another rank's

// Adds rows of dh to rows of a table; row_of(token) == -1: out of range, poisons row 0;
// kElsewhere: nothing.
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
    if (row == kElsewhere) continue;
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

// The row of weight that a token has; -1: no row of any weight.
int64_t RowOf(const EmbeddingShape& s, int32_t token) {
  if (!Known(s, token)) return s.first_row == 0 ? -1 : kElsewhere;
  const int64_t row = token - s.first_row;
  return row >= 0 && row < s.rows ? row : kElsewhere;
}

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

void LookUp(const EmbeddingShape& s, const int32_t* tokens, const float* weight, float* h) {
  for (int64_t t = 0; t < s.tokens; ++t) {
    const int64_t row = RowOf(s, tokens[t]);
    for (int64_t i = 0; i < s.width; ++i) {
      const float none = row == kElsewhere ? 0.0f : std::numeric_limits<float>::quiet_NaN();
      h[t * s.width + i] = row < 0 ? none : weight[row * s.width + i];
    }
  }
}

void EmbeddingStream(const Numerics& n, const EmbeddingShape& s, const float* sum,
                     const float* position, float* h) {
  for (int64_t i = 0; i < s.tokens * s.width; ++i)
    h[i] = position == nullptr ? sum[i] : sum[i] + position[s.first * s.width + i];
  n.Round(grids::kResidual, h, s.tokens * s.width);
}

void EmbeddingWgrad(const Numerics& n, const EmbeddingShape& s, const int32_t* tokens,
                    const float* dh, const GradTarget& weight) {
  AddRows(
      n, s, s.rows, dh, [&](int64_t t) { return RowOf(s, tokens[t]); }, weight);
}

void PositionWgrad(const Numerics& n, const EmbeddingShape& s, const float* dh,
                   const GradTarget& position) {
  AddRows(
      n, s, s.positions, dh, [&](int64_t t) { return s.first + t; }, position);
}

}  // namespace shardproof
