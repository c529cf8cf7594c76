// kernels.h: what does each kind of node compute, forward and backward?
//
// Plain functions on row-major host memory; (T, C) is T tokens of C channels. Every operand of a sum has been put on a
// grid before, so sums are exact in any order; Quantiser says how, or that nothing is rounded (for finite differences).
#pragma once
#include <cstdint>

#include "conformance/model/interim/quant.h"

namespace shardproof {

struct Quantiser {
  bool on = true;
  float operator()(float x, const Grid& grid) const { return on ? Quantise(x, grid) : x; }
};

// Grids of NUMERICS.md.
constexpr Grid kActivation{-5, 127}, kResidual{-5, 511}, kWeight{-7, 127}, kNormWeight{-6, 127};
constexpr Grid kNumerator{-12, 4096}, kProbability{-7, 128}, kLogitGrad{-7, 127}, kTokenLoss{-10, 16383};

// y (T, N) = x (T, K) w^T, w (N, K), + bias (N) if not null. Exact sums, unrounded.
void linear_forward(float* y, const float* x, const float* w, const float* bias, int64_t t, int64_t k, int64_t n);
// dx (T, K) = dy (T, N) w
void linear_dgrad(float* dx, const float* dy, const float* w, int64_t t, int64_t k, int64_t n);
// dw (N, K) = dy^T x, dbias (N) = column sums of dy if not null
void linear_wgrad(float* dw, float* dbias, const float* dy, const float* x, int64_t t, int64_t k, int64_t n);

// y = x / sqrt(mean(x^2) + eps) * w, by row. normed (T, C), if not null, receives x / sqrt(...) on the activation grid.
void rmsnorm_forward(float* y, float* normed, const float* x, const float* w, int64_t t, int64_t c, Quantiser q);
// dx (T, C), with dy on its grid and the inner dot product's operands on dot_grid and the activation grid.
void rmsnorm_dgrad(float* dx, const float* dy, const float* x, const float* w, int64_t t, int64_t c, Grid dot_grid,
                   Quantiser q);

// Causal attention over one sequence. qkv (T, 3C): query, key, value side by side; out (T, C).
void attention_forward(float* out, const float* qkv, int64_t t, int64_t c, int64_t heads, Quantiser q);
// dqkv (T, 3C). dout is on its grid; dprob and dscore grids are those of the softmax's backward.
struct AttentionGrids {
  Grid dprob, dscore;
};
struct SquareSum {
  double sum = 0;
  int64_t n = 0;
};
void attention_dgrad(float* dqkv, const float* dout, const float* qkv, int64_t t, int64_t c, int64_t heads,
                     AttentionGrids grids, Quantiser q, SquareSum* dprob_seen = nullptr,
                     SquareSum* dscore_seen = nullptr);

void silu_forward(float* y, const float* x, int64_t n);
void silu_dgrad(float* dx, const float* dy, const float* x, int64_t n);

// Sum over tokens of cross-entropy; logits (T, V).
float cross_entropy_forward(const float* logits, const int32_t* labels, int64_t t, int64_t v, Quantiser q);
// dlogits (T, V) = (softmax - onehot) on its grid, times scale.
void cross_entropy_dgrad(float* dlogits, const float* logits, const int32_t* labels, int64_t t, int64_t v, float scale,
                         Quantiser q);

}  // namespace shardproof
