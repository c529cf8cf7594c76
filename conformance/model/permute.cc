// moe_kernels.h: permuting tokens into rows by expert, and back.
#include <algorithm>
#include <cmath>

#include "conformance/model/grids.h"
#include "conformance/model/moe_kernels.h"

namespace shardproof {

std::vector<int64_t> RowsOfChoices(const RouterRule& rule, const int32_t* index, int64_t n_rows) {
  const int64_t choices = rule.tokens * rule.top_k;
  auto known = [&](int64_t i) { return index[i] >= 0 && index[i] < rule.experts; };
  std::vector<int64_t> next(static_cast<size_t>(rule.experts)), end(next.size());
  for (int64_t i = 0; i < choices; ++i) {
    if (known(i)) ++end[static_cast<size_t>(index[i])];
  }
  int64_t begin = 0;
  for (size_t e = 0; e < next.size(); ++e) {
    next[e] = begin;
    begin += rule.pad ? rule.rows_per_expert() : end[e];
    end[e] = begin;
  }
  std::vector<int64_t> rows(static_cast<size_t>(choices), -1);
  for (int64_t i = 0; i < choices; ++i) {
    if (!known(i)) continue;
    const auto e = static_cast<size_t>(index[i]);
    if (next[e] < end[e] && next[e] < n_rows) rows[static_cast<size_t>(i)] = next[e]++;
  }
  return rows;
}

void PermuteForward(const RouterRule& rule, int64_t n_rows, const float* x, const float* probs,
                    const int32_t* index, float* rows, float* row_probs) {
  std::fill(rows, rows + n_rows * rule.width, 0.0f);
  std::fill(row_probs, row_probs + n_rows, 0.0f);
  const std::vector<int64_t> row_of = RowsOfChoices(rule, index, n_rows);
  for (size_t i = 0; i < row_of.size(); ++i) {
    if (row_of[i] < 0) continue;
    const float* token = x + static_cast<int64_t>(i) / rule.top_k * rule.width;
    std::copy(token, token + rule.width, rows + row_of[i] * rule.width);
    row_probs[row_of[i]] = probs[i];
  }
}

void PermuteDgrad(const Numerics& n, const RouterRule& rule, int64_t n_rows, const int32_t* index,
                  const float* drows, const float* drow_probs, float* dx, float* dprobs) {
  if (n.checks()) {
    n.probe->CheckOnGrid("permute dgrad: rows", drows, n_rows * rule.width,
                         n.Scaled(grids::kDDispatched));
    n.probe->CheckOnGrid("permute dgrad: probabilities", drow_probs, n_rows,
                         n.Scaled(grids::kDRowProbability));
  }
  const std::vector<int64_t> row_of = RowsOfChoices(rule, index, n_rows);
  for (size_t i = 0; i < row_of.size(); ++i) {
    dprobs[i] = row_of[i] < 0 ? 0.0f : drow_probs[row_of[i]];
    if (row_of[i] < 0) continue;
    float* token = dx + static_cast<int64_t>(i) / rule.top_k * rule.width;
    const float* row = drows + row_of[i] * rule.width;
    for (int64_t w = 0; w < rule.width; ++w) token[w] = token[w] + row[w];
  }
}

void UnpermuteForward(const Numerics& n, const RouterRule& rule, int64_t n_rows, const float* rows,
                      const int32_t* index, const float* shared, const float* residual,
                      float* out) {
  const int64_t count = rule.tokens * rule.width;
  const std::vector<int64_t> row_of = RowsOfChoices(rule, index, n_rows);
  if (n.checks()) {
    n.probe->CheckOnGrid("unpermute: residual", residual, count, grids::kResidual);
    if (shared != nullptr)
      n.probe->CheckOnGrid("unpermute: shared expert", shared, count, grids::kActivation);
  }
  for (int64_t i = 0; i < count; ++i)
    out[i] = shared == nullptr ? residual[i] : residual[i] + shared[i];
  for (size_t i = 0; i < row_of.size(); ++i) {
    if (row_of[i] < 0) continue;
    const float* row = rows + row_of[i] * rule.width;
    if (n.checks())
      n.probe->CheckOnGrid("unpermute: expert row", row, rule.width, grids::kActivation);
    float* token = out + static_cast<int64_t>(i) / rule.top_k * rule.width;
    for (int64_t w = 0; w < rule.width; ++w) token[w] = token[w] + row[w];
  }
  n.Round(grids::kResidual, out, count);
}

void UnpermuteDgrad(const Numerics& n, const RouterRule& rule, int64_t n_rows, const int32_t* index,
                    const float* dout, float* drows, float* dshared, float* dresidual,
                    bool add_residual) {
  const int64_t count = rule.tokens * rule.width;
  std::vector<float> branch(dout, dout + count), stream(dout, dout + count);
  n.RoundGrad(grids::kDBranch, branch.data(), count);
  n.RoundGrad(grids::kDResidual, stream.data(), count);
  std::fill(drows, drows + n_rows * rule.width, 0.0f);
  const std::vector<int64_t> row_of = RowsOfChoices(rule, index, n_rows);
  for (size_t i = 0; i < row_of.size(); ++i) {
    if (row_of[i] < 0) continue;
    const float* token = branch.data() + static_cast<int64_t>(i) / rule.top_k * rule.width;
    std::copy(token, token + rule.width, drows + row_of[i] * rule.width);
  }
  if (dshared != nullptr) std::copy(branch.begin(), branch.end(), dshared);
  for (int64_t i = 0; i < count; ++i) {
    const float d = stream[static_cast<size_t>(i)];
    dresidual[i] = add_residual ? dresidual[i] + d : d;
  }
}

}  // namespace shardproof
