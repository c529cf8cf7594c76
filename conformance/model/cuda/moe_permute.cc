#include "conformance/model/cuda/moe_permute.h"

namespace shardproof::device {
namespace {

void FillWithMinusOne(Queue& queue, int64_t* to, int64_t n) {
  if (n > 0)
    queue.Fill(reinterpret_cast<std::byte*>(to), 0xFF, static_cast<uint64_t>(n) * sizeof(int64_t));
}

// One index an expert. Its rows begin where those of lower experts end; each of its choices, in
// token order, has the next one.
void FindRows(Queue& queue, const RouterRule& rule, const int32_t* index, int64_t n_rows,
              int64_t* row_of, int64_t* choice_of) {
  const int64_t choices = rule.tokens * rule.top_k, padded = rule.pad ? rule.rows_per_expert() : -1;
  ForEach(queue, "rows_of_choices", rule.experts, [=] SHARDPROOF_KERNEL(int64_t e) {
    int64_t before = 0, own = 0;
    for (int64_t i = 0; i < choices; ++i) {
      if (index[i] >= 0 && index[i] < e) ++before;
      if (index[i] == e) ++own;
    }
    int64_t next = padded < 0 ? before : e * padded;
    const int64_t end = next + (padded < 0 ? own : padded);
    for (int64_t i = 0; i < choices && next < end && next < n_rows; ++i) {
      if (index[i] != e) continue;
      row_of[i] = next;
      choice_of[next] = i;
      ++next;
    }
  });
}

}  // namespace

ChoiceRows::ChoiceRows(Queue& queue, const RouterRule& rule, const int32_t* index, int64_t n_rows)
    : row_of_(queue, rule.tokens * rule.top_k), choice_of_(queue, n_rows) {
  FillWithMinusOne(queue, row_of_.get(), rule.tokens * rule.top_k);
  FillWithMinusOne(queue, choice_of_.get(), n_rows);
  FindRows(queue, rule, index, n_rows, row_of_.get(), choice_of_.get());
}

void PermuteForward(Queue& queue, const RouterRule& rule, int64_t n_rows, const float* x,
                    const float* probs, const int32_t* index, float* rows, float* row_probs) {
  const ChoiceRows mapped(queue, rule, index, n_rows);
  const int64_t width = rule.width, k = rule.top_k;
  const int64_t* choice_of = mapped.choice_of();
  ForEach(queue, "permute", n_rows * width, [=] SHARDPROOF_KERNEL(int64_t i) {
    const int64_t choice = choice_of[i / width];
    rows[i] = choice < 0 ? 0.0f : x[choice / k * width + i % width];
  });
  ForEach(queue, "permute_probs", n_rows, [=] SHARDPROOF_KERNEL(int64_t row) {
    row_probs[row] = choice_of[row] < 0 ? 0.0f : probs[choice_of[row]];
  });
}

void PermuteDgrad(Queue& queue, const RouterRule& rule, int64_t n_rows, const int32_t* index,
                  const float* drows, const float* drow_probs, float* dx, float* dprobs) {
  const ChoiceRows mapped(queue, rule, index, n_rows);
  const int64_t width = rule.width, k = rule.top_k;
  const int64_t* row_of = mapped.row_of();
  ForEach(queue, "permute_dprobs", rule.tokens * k, [=] SHARDPROOF_KERNEL(int64_t i) {
    dprobs[i] = row_of[i] < 0 ? 0.0f : drow_probs[row_of[i]];
  });
  ForEach(queue, "permute_dgrad", rule.tokens * width, [=] SHARDPROOF_KERNEL(int64_t i) {
    const int64_t* row = row_of + i / width * k;
    for (int64_t c = 0; c < k; ++c) {
      if (row[c] >= 0) dx[i] = dx[i] + drows[row[c] * width + i % width];
    }
  });
}

void UnpermuteForward(Queue& queue, const Rules& rules, const RouterRule& rule, int64_t n_rows,
                      const float* rows, const int32_t* index, const float* shared,
                      const float* residual, float* out) {
  const ChoiceRows mapped(queue, rule, index, n_rows);
  const int64_t width = rule.width, k = rule.top_k;
  const int64_t* row_of = mapped.row_of();
  const Rules r = rules;
  const Grid grid = grids::kResidual;
  ForEach(queue, "unpermute", rule.tokens * width, [=] SHARDPROOF_KERNEL(int64_t i) {
    const int64_t* row = row_of + i / width * k;
    float sum = shared == nullptr ? residual[i] : residual[i] + shared[i];
    for (int64_t c = 0; c < k; ++c) {
      if (row[c] >= 0) sum = sum + rows[row[c] * width + i % width];
    }
    out[i] = r.Rounded(grid, sum);
  });
}

void UnpermuteDgrad(Queue& queue, const Rules& rules, const RouterRule& rule, int64_t n_rows,
                    const int32_t* index, const float* dout, const UnpermuteGrads& grads) {
  const ChoiceRows mapped(queue, rule, index, n_rows);
  const int64_t width = rule.width, k = rule.top_k;
  const int64_t* choice_of = mapped.choice_of();
  const Rules r = rules;
  const UnpermuteGrads to = grads;
  const Grid branch = rules.Scaled(grids::kDBranch), stream = rules.Scaled(grids::kDResidual);
  ForEach(queue, "unpermute_drows", n_rows * width, [=] SHARDPROOF_KERNEL(int64_t i) {
    const int64_t choice = choice_of[i / width];
    to.rows[i] = choice < 0 ? 0.0f : r.Rounded(branch, dout[choice / k * width + i % width]);
  });
  ForEach(queue, "unpermute_dgrad", rule.tokens * width, [=] SHARDPROOF_KERNEL(int64_t i) {
    if (to.shared != nullptr) to.shared[i] = r.Rounded(branch, dout[i]);
    const float d = r.Rounded(stream, dout[i]);
    to.residual[i] = to.add_residual ? to.residual[i] + d : d;
  });
}

}  // namespace shardproof::device
