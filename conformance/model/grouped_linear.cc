// moe_kernels.h: linear modules of several experts on rows that lie by source rank and expert.
#include <limits>

#include "conformance/model/grids.h"
#include "conformance/model/linear.h"
#include "conformance/model/moe_kernels.h"

namespace shardproof {
namespace {

// Calls visit(expert, first row, rows) for each stretch of rows of one expert. Stretches of no rows
// are left out.
template <typename Visit>
void ForEachStretch(const ExpertRows& rows, Visit visit) {
  int64_t first = 0;
  for (int64_t i = 0; i < rows.ranks * rows.experts; ++i) {
    const int64_t count = rows.counts == nullptr ? rows.uniform : rows.counts[i];
    if (count > 0) visit(static_cast<size_t>(i % rows.experts), first, count);
    first += count;
  }
}

}  // namespace

int64_t ExpertRows::total() const {
  int64_t sum = 0;
  for (int64_t i = 0; i < ranks * experts; ++i) sum += counts == nullptr ? uniform : counts[i];
  return sum;
}

bool ExpertRows::Fits(int64_t n_rows) const {
  int64_t left = n_rows;
  for (int64_t i = 0; i < ranks * experts; ++i) {
    const int64_t count = counts == nullptr ? uniform : counts[i];
    if (count < 0 || count > left) return false;
    left -= count;
  }
  return left == 0;
}

std::vector<int32_t> ExpertRows::ExpertOfRow() const {
  std::vector<int32_t> expert(static_cast<size_t>(total()));
  ForEachStretch(*this, [&](size_t e, int64_t first, int64_t count) {
    for (int64_t r = first; r < first + count; ++r)
      expert[static_cast<size_t>(r)] = static_cast<int32_t>(e);
  });
  return expert;
}

void GroupedForward(const Numerics& n, const ExpertRows& rows, int64_t in, int64_t out,
                    const float* x, const std::vector<const float*>& weights,
                    const std::vector<const float*>& biases, Grid to, float* y) {
  ForEachStretch(rows, [&](size_t e, int64_t first, int64_t count) {
    LinearForward(n, {count, in, out}, x + first * in, weights[e],
                  biases.empty() ? nullptr : biases[e], y + first * out);
    n.Round(to, y + first * out, count * out);
  });
}

void GroupedDgrad(const Numerics& n, const ExpertRows& rows, int64_t in, int64_t out,
                  const float* dy, Grid dy_grid, const std::vector<const float*>& weights, Grid to,
                  float* dx) {
  ForEachStretch(rows, [&](size_t e, int64_t first, int64_t count) {
    LinearDgrad(n, {count, in, out}, dy + first * out, dy_grid, weights[e], to, dx + first * in);
  });
}

void GroupedWgrad(const Numerics& n, const ExpertRows& rows, int64_t in, int64_t out,
                  const float* x, const float* dy, Grid dy_grid,
                  const std::vector<GradTarget>& weights, const std::vector<GradTarget>& biases) {
  ForEachStretch(rows, [&](size_t e, int64_t first, int64_t count) {
    const LinearShape shape{count, in, out};
    if (!weights.empty() && weights[e].data != nullptr)
      LinearWgrad(n, shape, x + first * in, dy + first * out, dy_grid, weights[e]);
    if (!biases.empty() && biases[e].data != nullptr)
      LinearBiasGrad(n, shape, dy + first * out, dy_grid, biases[e]);
  });
}

}  // namespace shardproof
