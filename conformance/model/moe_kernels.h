// moe_kernels.h: what do a router, a dispatcher and a group of experts compute?
//
// T tokens of one sample, E experts, k choices a token. Rows are in expert-major order: all rows of
// expert 0 in token order, then expert 1, and so on; E/ep experts live on each ep rank, so the rows
// for one rank are contiguous. Received rows are source-rank major, then local expert. Whatever
// leaves a kernel to be summed or sent is on an 8-bit grid, so the grouping of tokens changes
// nothing (NUMERICS.md). A stale index or count never leads outside a buffer: an index that is no
// expert counts as dropped, and counts are checked by ExpertRows::Fits before use.
//
// Gradient grids, by value: combined, expert_out: kDBranch. Output of the act node: kDExpertAct; of
// fc1: kDExpertFc1. dispatched, permuted: kDDispatched. dispatched_probs, permuted_probs, probs:
// kDRowProbability. What is added into the gradient of the router's input x is up to (k + 2) terms
// of up to 127 quanta: the norm before puts it on kDMoeNormOut before it uses it.
#pragma once
#include <cstdint>
#include <vector>

#include "conformance/model/numerics.h"

namespace shardproof {

enum class Score { kSoftmax, kPreSoftmax, kSigmoid };

struct RouterRule {
  int64_t tokens = 0, width = 0, experts = 0, top_k = 0;
  Score score = Score::kSoftmax;
  int32_t groups = 1, top_groups = 1;
  bool z_loss = false, aux_loss = false;
  // Equal parts of the tokens, each with a capacity and auxiliary losses of its own.
  int64_t parts = 1;
  // Rows per expert and part, at most its tokens count; 0: dropless. Choices beyond it are dropped,
  // the latest tokens' first.
  int64_t capacity = 0;
  bool pad = false;  // every expert has exactly capacity rows a part, the rest of them zero
  // Added to what the choice is made by, by expert (skewed routing); may be empty. Multiples of
  // 2^-7 up to 1024, so that sums over a group stay exact.
  std::vector<float> selection;
  int64_t part_tokens() const { return tokens / parts; }
  int64_t rows_per_expert() const {  // with a capacity
    return parts * (capacity < part_tokens() ? capacity : part_tokens());
  }
};

// Rows per expert: ceil(tokens * k / experts * percent / 100), at most tokens. 0 if
// percent is.
int64_t ExpertCapacity(int64_t tokens, int64_t top_k, int64_t experts, int64_t percent);
// Throws std::invalid_argument naming the first field that is out of range or does not divide.
void RequireValid(const RouterRule& rule);

// x [T, width] on the activations' grid, weight [E, width]; bias [E] only with sigmoid scores (null
// otherwise), and then in all phases. probs [T, k] (0 where dropped), index [T, k] (expert, -1
// where dropped), expert_counts [E] (rows of each expert; with pad always the capacity). A token's
// choices are in the order of preference, ties to the lower expert.
void RouterForward(const Numerics& n, const RouterRule& rule, const float* x, const float* weight,
                   const float* bias, float* probs, int32_t* index, int64_t* expert_counts);
// dx is added to. aux_scale: of both auxiliary losses, relative to nothing (right if it is the loss
// scale).
void RouterDgrad(const Numerics& n, const RouterRule& rule, const float* x, const float* weight,
                 const float* bias, const int32_t* index, const float* dprobs, double aux_scale,
                 float* dx);
void RouterWgrad(const Numerics& n, const RouterRule& rule, const float* x, const float* weight,
                 const float* bias, const int32_t* index, const float* dprobs, double aux_scale,
                 const GradTarget& grad);

// The row of each (token, choice), -1 where dropped or not below n_rows.
std::vector<int64_t> RowsOfChoices(const RouterRule& rule, const int32_t* index, int64_t n_rows);
// rows [R, width], row_probs [R]; rows that belong to no choice (padding) are zero.
void PermuteForward(const RouterRule& rule, int64_t n_rows, const float* x, const float* probs,
                    const int32_t* index, float* rows, float* row_probs);
// dx is added to; dprobs is 0 where dropped.
void PermuteDgrad(const Numerics& n, const RouterRule& rule, int64_t n_rows, const int32_t* index,
                  const float* drows, const float* drow_probs, float* dx, float* dprobs);
// out = residual + shared + sum of a token's rows, on the residual grid; shared may be null.
void UnpermuteForward(const Numerics& n, const RouterRule& rule, int64_t n_rows, const float* rows,
                      const int32_t* index, const float* shared, const float* residual, float* out);
// The gradient of rows on the grid of a branch; padding rows get zero. dshared may be null;
// residual: added to if so.
void UnpermuteDgrad(const Numerics& n, const RouterRule& rule, int64_t n_rows, const int32_t* index,
                    const float* dout, float* drows, float* dshared, float* dresidual,
                    bool add_residual);

// Received rows: counts [ranks, local experts], source-rank major.
struct ExpertRows {
  int64_t ranks = 0, experts = 0;
  const int64_t* counts = nullptr;  // null: each has `uniform` rows (padded)
  int64_t uniform = 0;
  int64_t total() const;
  // Whether counts are not negative and make n_rows rows. If not (stale or poisoned counts), do not
  // call the kernels.
  bool Fits(int64_t n_rows) const;
  // Local expert of each row.
  std::vector<int32_t> ExpertOfRow() const;
};
// y [rows, out] = x [rows, in] times the weight [out, in] (and bias) of each row's expert. On the
// grid `to`.
void GroupedForward(const Numerics& n, const ExpertRows& rows, int64_t in, int64_t out,
                    const float* x, const std::vector<const float*>& weights,
                    const std::vector<const float*>& biases, Grid to, float* y);
void GroupedDgrad(const Numerics& n, const ExpertRows& rows, int64_t in, int64_t out,
                  const float* dy, Grid dy_grid, const std::vector<const float*>& weights, Grid to,
                  float* dx);
// Experts without rows add nothing (their gradient is zero, not missing).
void GroupedWgrad(const Numerics& n, const ExpertRows& rows, int64_t in, int64_t out,
                  const float* x, const float* dy, Grid dy_grid,
                  const std::vector<GradTarget>& weights, const std::vector<GradTarget>& biases);
// drow_probs [rows], on kDRowProbability; dx on kDExpertFc1; dy on kDExpertAct.
// SwiGLU of x [rows, 2 ffn], times the row's probability: before fc2, so that combining is a plain
// sum.
void GatedSwigluForward(const Numerics& n, int64_t rows, int64_t ffn, const float* x,
                        const float* row_probs, float* y);
void GatedSwigluDgrad(const Numerics& n, int64_t rows, int64_t ffn, const float* x,
                      const float* row_probs, const float* dy, float* dx, float* drow_probs);

}  // namespace shardproof
