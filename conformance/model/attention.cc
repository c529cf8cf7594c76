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

// Rows of a matrix, and where each head begins in them. Elements.
template <typename T>
struct Rows {
  T* data;
  int64_t stride, head;
  T* Head(int64_t h) const { return data + h * head; }
};
template <typename T>
struct Parts {
  Rows<T> q, k, v;
};

// kv: where keys and values lie apart.
template <typename T>
Parts<T> PartsOf(const AttentionShape& s, T* qkv, T* kv) {
  const int64_t part = s.part_step();
  const Rows<T> q{qkv, 3 * s.inner(), s.head_step()};
  if (!s.apart()) return {q, {qkv + part, q.stride, q.head}, {qkv + 2 * part, q.stride, q.head}};
  const Rows<T> k{kv, 2 * s.inner(), s.head_step(2)};
  return {q, k, {kv + part, k.stride, k.head}};
}

// One head. p and ds (tokens, keys), zero for keys that a query does not see.
struct Head {
  const Numerics& n;
  int64_t tokens, keys, first, dim;
  Rows<const float> q, k, v;  // of the head

  int64_t Seen(int64_t query) const { return first + query + 1; }

  void Probabilities(float* p) const {
    for (int64_t i = 0; i < tokens; ++i) {
      float* row = p + i * keys;
      const int64_t seen = Seen(i);
      std::fill(row, row + keys, 0.0f);
      for (int64_t j = 0; j < seen; ++j) {
        row[j] = kScale * Dot(n, "attention scores", q.data + i * q.stride, 1, grids::kActivation.e,
                              k.data + j * k.stride, 1, grids::kActivation.e, dim);
      }
      float top = row[0];
      for (int64_t j = 1; j < seen; ++j) top = row[j] > top ? row[j] : top;
      for (int64_t j = 0; j < seen; ++j) row[j] = Exp(row[j] - top);
      n.Round(grids::kNumerator, row, seen);
      float sum = 0;
      for (int64_t j = 0; j < seen; ++j) sum = sum + row[j];
      if (n.checks())
        n.probe->CheckTotal("attention softmax", std::ldexp(sum, -grids::kNumerator.e));
      for (int64_t j = 0; j < seen; ++j) row[j] = row[j] / sum;
      n.Round(grids::kProbability, row, seen);
    }
  }

  // Gradient of the scaled scores.
  void ScoreGradients(const float* p, const float* dout, int64_t dout_stride, float* ds) const {
    const int32_t dout_e = n.Scaled(grids::kDAttention).e, dp_e = n.Scaled(grids::kDProbability).e;
    for (int64_t i = 0; i < tokens; ++i) {
      float* row = ds + i * keys;
      const float* p_row = p + i * keys;
      const int64_t seen = Seen(i);
      std::fill(row, row + keys, 0.0f);
      for (int64_t j = 0; j < seen; ++j) {
        row[j] = Dot(n, "attention dprobability", dout + i * dout_stride, 1, dout_e,
                     v.data + j * v.stride, 1, grids::kActivation.e, dim);
      }
      n.RoundGrad(grids::kDProbability, row, seen);
      const float dot =
          Dot(n, "attention softmax dgrad", p_row, 1, grids::kProbability.e, row, 1, dp_e, seen);
      for (int64_t j = 0; j < seen; ++j) row[j] = p_row[j] * (row[j] - dot);
      n.RoundGrad(grids::kDScore, row, seen);
    }
  }

  void QueryGradients(const float* ds, Rows<float> dq) const {
    const int32_t ds_e = n.Scaled(grids::kDScore).e;
    for (int64_t i = 0; i < tokens; ++i) {
      for (int64_t d = 0; d < dim; ++d) {
        dq.data[i * dq.stride + d] =
            kScale * Dot(n, "attention dq", ds + i * keys, 1, ds_e, k.data + d, k.stride,
                         grids::kActivation.e, Seen(i));
      }
    }
  }

  // A key and a value are seen by the queries from theirs on: columns of ds and p.
  void KeyGradients(const float* p, const float* ds, const float* dout, int64_t dout_stride,
                    Rows<float> dk, Rows<float> dv) const {
    const int32_t ds_e = n.Scaled(grids::kDScore).e, dout_e = n.Scaled(grids::kDAttention).e;
    for (int64_t j = 0; j < keys; ++j) {
      const int64_t from = std::min(std::max(j - first, int64_t{0}), tokens);
      const int64_t below = from * keys + j, count = tokens - from;
      for (int64_t d = 0; d < dim; ++d) {
        dk.data[j * dk.stride + d] =
            kScale * Dot(n, "attention dk", ds + below, keys, ds_e, q.data + from * q.stride + d,
                         q.stride, grids::kActivation.e, count);
        dv.data[j * dv.stride + d] = Dot(n, "attention dv", p + below, keys, grids::kProbability.e,
                                         dout + from * dout_stride + d, dout_stride, dout_e, count);
      }
    }
  }
};

Head HeadOf(const Numerics& n, const AttentionShape& s, const Parts<const float>& parts,
            int64_t h) {
  return {n,
          s.tokens,
          s.key_count(),
          s.first,
          s.head_dim,
          {parts.q.Head(h), parts.q.stride, 0},
          {parts.k.Head(h), parts.k.stride, 0},
          {parts.v.Head(h), parts.v.stride, 0}};
}

Rows<float> Of(const Rows<float>& rows, int64_t h) { return {rows.Head(h), rows.stride, 0}; }

}  // namespace

void AttentionForward(const Numerics& n, const AttentionShape& s, const float* qkv, const float* kv,
                      float* out) {
  const int64_t inner = s.inner(), keys = s.key_count();
  const Parts<const float> parts = PartsOf(s, qkv, kv);
  std::vector<float> p(static_cast<size_t>(s.tokens * keys));
  for (int64_t h = 0; h < s.heads; ++h) {
    const Head head = HeadOf(n, s, parts, h);
    head.Probabilities(p.data());
    for (int64_t i = 0; i < s.tokens; ++i) {
      for (int64_t d = 0; d < s.head_dim; ++d) {
        out[i * inner + h * s.head_dim + d] =
            Dot(n, "attention output", p.data() + i * keys, 1, grids::kProbability.e,
                head.v.data + d, head.v.stride, grids::kActivation.e, head.Seen(i));
      }
    }
  }
  n.Round(grids::kActivation, out, s.tokens * inner);
}

void AttentionDgrad(const Numerics& n, const AttentionShape& s, const float* qkv, const float* kv,
                    const float* dout, float* dqkv, float* dkv) {
  const int64_t inner = s.inner(), count = s.tokens * 3 * inner;
  const Parts<const float> parts = PartsOf(s, qkv, kv);
  std::vector<float> own(static_cast<size_t>(s.apart() ? count : 0));
  float* sum = s.apart() ? own.data() : dqkv;
  const Parts<float> grads = PartsOf(s, sum, dkv);
  std::vector<float> p(static_cast<size_t>(s.tokens * s.key_count())), ds(p.size());
  for (int64_t h = 0; h < s.heads; ++h) {
    const Head head = HeadOf(n, s, parts, h);
    const float* dhead = dout + h * s.head_dim;
    head.Probabilities(p.data());
    head.ScoreGradients(p.data(), dhead, inner, ds.data());
    head.QueryGradients(ds.data(), Of(grads.q, h));
    head.KeyGradients(p.data(), ds.data(), dhead, inner, Of(grads.k, h), Of(grads.v, h));
  }
  n.RoundGrad(grids::kDQkv, sum, count);
  for (size_t i = 0; i < own.size(); ++i) dqkv[i] = dqkv[i] + own[i];
}

namespace {

// Calls with the indices of a key's or value's element in qkv and in kv.
template <typename Each>
void ForKeysValues(const AttentionShape& s, const Each& each) {
  const int64_t part = s.part_step();
  for (int64_t i = 0; i < s.tokens; ++i) {
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t which = 0; which < 2; ++which) {
        for (int64_t d = 0; d < s.head_dim; ++d) {
          each(i * 3 * s.inner() + h * s.head_step() + (which + 1) * part + d,
               i * 2 * s.inner() + h * s.head_step(2) + which * part + d);
        }
      }
    }
  }
}

}  // namespace

void TakeKeysValues(const AttentionShape& s, const float* qkv, float* kv) {
  ForKeysValues(s, [&](int64_t from, int64_t to) { kv[to] = qkv[from]; });
}

void AddKeysValuesGrad(const Numerics& n, const AttentionShape& s, const float* dkv, float* dqkv) {
  const int64_t count = s.tokens * 2 * s.inner();
  std::vector<float> rounded(dkv, dkv + count);
  n.RoundGrad(grids::kDQkv, rounded.data(), count);
  ForKeysValues(s, [&](int64_t to, int64_t from) {
    dqkv[to] = dqkv[to] + rounded[static_cast<size_t>(from)];
  });
}

}  // namespace shardproof
