#include "conformance/model/attention.h"

#include <algorithm>
#include <cmath>

#include "conformance/model/grids.h"

namespace shardproof {
namespace {

constexpr float kScale = 0.25f;  // of scores; a power of two whatever the head's size

// Sum of products of two vectors with strides.
float Dot(const Numerics& n, const char* sum, const float* a, int64_t a_stride, int32_t a_e,
          const float* b, int64_t b_stride, int32_t b_e, int64_t count) {
  float dot = 0;
  for (int64_t i = 0; i < count; ++i) dot = dot + a[i * a_stride] * b[i * b_stride];
  if (n.checks()) {
    double magnitude = 0;
    for (int64_t i = 0; i < count; ++i)
      magnitude += std::fabs(static_cast<double>(a[i * a_stride]) * b[i * b_stride]);
    n.probe->CheckTotal(sum, std::ldexp(magnitude, -a_e - b_e));
  }
  return dot;
}

// One head: rows of queries, keys, values are `stride` apart.
struct Head {
  const Numerics& n;
  int64_t tokens, dim, stride;
  const float *q, *k, *v;

  // p (tokens, tokens), zero above the diagonal.
  void Probabilities(float* p) const {
    for (int64_t i = 0; i < tokens; ++i) {
      float* row = p + i * tokens;
      std::fill(row, row + tokens, 0.0f);
      for (int64_t j = 0; j <= i; ++j) {
        row[j] = kScale * Dot(n, "attention scores", q + i * stride, 1, grids::kActivation.e,
                              k + j * stride, 1, grids::kActivation.e, dim);
      }
      float top = row[0];
      for (int64_t j = 1; j <= i; ++j) top = row[j] > top ? row[j] : top;
      for (int64_t j = 0; j <= i; ++j) row[j] = Exp(row[j] - top);
      n.Round(grids::kNumerator, row, i + 1);
      float sum = 0;
      for (int64_t j = 0; j <= i; ++j) sum = sum + row[j];
      if (n.checks())
        n.probe->CheckTotal("attention softmax", std::ldexp(sum, -grids::kNumerator.e));
      for (int64_t j = 0; j <= i; ++j) row[j] = row[j] / sum;
      n.Round(grids::kProbability, row, i + 1);
    }
  }

  // ds (tokens, tokens): gradient of the scaled scores.
  void ScoreGradients(const float* p, const float* dout, int64_t dout_stride, float* ds) const {
    const int32_t dout_e = n.Scaled(grids::kDAttention).e, dp_e = n.Scaled(grids::kDProbability).e;
    for (int64_t i = 0; i < tokens; ++i) {
      float* row = ds + i * tokens;
      const float* p_row = p + i * tokens;
      std::fill(row, row + tokens, 0.0f);
      for (int64_t j = 0; j <= i; ++j) {
        row[j] = Dot(n, "attention dprobability", dout + i * dout_stride, 1, dout_e, v + j * stride,
                     1, grids::kActivation.e, dim);
      }
      n.RoundGrad(grids::kDProbability, row, i + 1);
      const float dot =
          Dot(n, "attention softmax dgrad", p_row, 1, grids::kProbability.e, row, 1, dp_e, i + 1);
      for (int64_t j = 0; j <= i; ++j) row[j] = p_row[j] * (row[j] - dot);
      n.RoundGrad(grids::kDScore, row, i + 1);
    }
  }
};

}  // namespace

void AttentionForward(const Numerics& n, const AttentionShape& s, const float* qkv, float* out) {
  const int64_t inner = s.inner(), stride = 3 * inner, part = s.part_step();
  std::vector<float> p(static_cast<size_t>(s.tokens * s.tokens));
  for (int64_t h = 0; h < s.heads; ++h) {
    const float* q = qkv + h * s.head_step();
    const Head head{n, s.tokens, s.head_dim, stride, q, q + part, q + 2 * part};
    head.Probabilities(p.data());
    for (int64_t i = 0; i < s.tokens; ++i) {
      for (int64_t d = 0; d < s.head_dim; ++d) {
        out[i * inner + h * s.head_dim + d] =
            Dot(n, "attention output", p.data() + i * s.tokens, 1, grids::kProbability.e,
                head.v + d, stride, grids::kActivation.e, i + 1);
      }
    }
  }
  n.Round(grids::kActivation, out, s.tokens * inner);
}

void AttentionDgrad(const Numerics& n, const AttentionShape& s, const float* qkv, const float* dout,
                    float* dqkv) {
  const int64_t inner = s.inner(), stride = 3 * inner, part = s.part_step(), t = s.tokens;
  const int32_t ds_e = n.Scaled(grids::kDScore).e, dout_e = n.Scaled(grids::kDAttention).e;
  std::vector<float> p(static_cast<size_t>(t * t)), ds(p.size());
  for (int64_t h = 0; h < s.heads; ++h) {
    const int64_t at = h * s.head_dim, first = h * s.head_step();
    const float* q = qkv + first;
    const Head head{n, t, s.head_dim, stride, q, q + part, q + 2 * part};
    head.Probabilities(p.data());
    head.ScoreGradients(p.data(), dout + at, inner, ds.data());
    for (int64_t i = 0; i < t; ++i) {
      for (int64_t d = 0; d < s.head_dim; ++d) {
        float* out = dqkv + i * stride + first + d;
        // A key and a value at i are seen by the queries from i on: column i of ds and p.
        const int64_t below = i * t + i;
        out[0] = kScale * Dot(n, "attention dq", ds.data() + i * t, 1, ds_e, head.k + d, stride,
                              grids::kActivation.e, i + 1);
        out[part] = kScale * Dot(n, "attention dk", ds.data() + below, t, ds_e,
                                 head.q + i * stride + d, stride, grids::kActivation.e, t - i);
        out[2 * part] = Dot(n, "attention dv", p.data() + below, t, grids::kProbability.e,
                            dout + i * inner + at + d, inner, dout_e, t - i);
      }
    }
  }
  n.RoundGrad(grids::kDQkv, dqkv, t * stride);
}

}  // namespace shardproof
