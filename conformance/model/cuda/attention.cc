#include "conformance/model/cuda/attention.h"

#include <limits>

#include "conformance/model/cuda/reduce.h"
#include "conformance/model/cuda/softmax.h"

namespace shardproof::device {
namespace {

constexpr float kScale = 0.25f;  // of scores; a power of two whatever the head's size

// A matrix for each head: [tokens, head_dim] inside a value's rows, or [tokens, tokens].
struct HeadMatrix {
  const float* data;
  int64_t stride, step;
};

// Sizes of the call, and where things lie. qkv [tokens, 3 inner]: queries, keys, values, each by head.
struct Shape {
  int64_t tokens, heads, dim, inner;
  HeadMatrix Part(const float* qkv, int64_t which) const { return {qkv + which * inner, 3 * inner, dim}; }
  HeadMatrix Output(const float* out) const { return {out, inner, dim}; }
  HeadMatrix Square(const float* p) const { return {p, tokens, tokens * tokens}; }
  int64_t square() const { return heads * tokens * tokens; }
};

Shape ShapeOf(const NodeContext& c) { return {c.d.sequence, c.d.heads, c.d.head_dim, c.d.inner()}; }

// A product for each head; [m, k] x [k, n] after transposition.
Gemm ByHead(const Shape& s, HeadMatrix a, HeadMatrix b, HeadMatrix to, float* c) {
  Gemm gemm;
  gemm.batch = s.heads;
  gemm.a = a.data;
  gemm.a_stride = a.stride;
  gemm.a_step = a.step;
  gemm.b = b.data;
  gemm.b_stride = b.stride;
  gemm.b_step = b.step;
  gemm.c = c;
  gemm.c_stride = to.stride;
  gemm.c_step = to.step;
  gemm.m = s.tokens;
  return gemm;
}

// to [tokens, tokens] = a b^T, of rows [tokens, dim].
void MultiplyRows(Queue& queue, const Shape& s, HeadMatrix a, HeadMatrix b, float* to) {
  Gemm gemm = ByHead(s, a, b, s.Square(to), to);
  gemm.n = s.tokens;
  gemm.k = s.dim;
  gemm.b_transposed = true;
  queue.Multiply(gemm);
}

// to [tokens, dim] = p b, or p^T b, of p [tokens, tokens]. What p has above the diagonal is zero.
void MultiplySquare(Queue& queue, const Shape& s, const float* p, bool transposed, HeadMatrix b, HeadMatrix to,
                    float* c) {
  Gemm gemm = ByHead(s, s.Square(p), b, to, c);
  gemm.n = s.dim;
  gemm.k = s.tokens;
  gemm.a_transposed = transposed;
  queue.Multiply(gemm);
}

// p [heads, tokens, tokens], zero above the diagonal.
void Probabilities(const NodeContext& c, const float* qkv, float* p) {
  const Shape s = ShapeOf(c);
  const int64_t tokens = s.tokens;
  const Rules rules = c.rules;
  const Grid numerator = grids::kNumerator, probability = grids::kProbability;
  MultiplyRows(c.queue, s, s.Part(qkv, 0), s.Part(qkv, 1), p);
  // exp of minus infinity is below every grid, and nothing beside the 1 of the largest score.
  ForEach(c.queue, "attention_scores", s.square(), [=] SHARDPROOF_KERNEL(int64_t i) {
    const bool seen = i % tokens <= i / tokens % tokens;
    p[i] = seen ? kScale * p[i] : -std::numeric_limits<float>::infinity();
  });
  const Scratch<float> of_tops(c.queue, s.heads * tokens), of_sums(c.queue, s.heads * tokens);
  float *tops = of_tops.get(), *sums = of_sums.get();
  SumNumerators(c.queue, rules, s.heads * tokens, tokens, p, tops, sums);
  ForEach(c.queue, "attention_probabilities", s.square(), [=] SHARDPROOF_KERNEL(int64_t i) {
    const int64_t row = i / tokens;
    const bool seen = i % tokens <= row % tokens;
    p[i] = seen ? rules.Rounded(probability, NumeratorOf(rules, numerator, p[i], tops[row]) / sums[row]) : 0.0f;
  });
}

// ds [heads, tokens, tokens]: gradient of the scaled scores, zero above the diagonal.
void ScoreGradients(const NodeContext& c, const float* qkv, const float* p, const float* dout, float* ds) {
  const Shape s = ShapeOf(c);
  const int64_t tokens = s.tokens;
  const Rules rules = c.rules;
  const Grid dprobability = rules.Scaled(grids::kDProbability), dscore = rules.Scaled(grids::kDScore);
  MultiplyRows(c.queue, s, s.Output(dout), s.Part(qkv, 2), ds);
  Round(c.queue, rules, dprobability, ds, s.square());
  const Scratch<float> of_dot(c.queue, s.heads * tokens);
  float* dot = of_dot.get();
  RowSums(
      c.queue, "attention_dot", s.heads * tokens, tokens,
      [=] SHARDPROOF_KERNEL(int64_t row, int64_t j) {
        return j <= row % tokens ? p[row * tokens + j] * ds[row * tokens + j] : 0.0f;
      },
      dot);
  ForEach(c.queue, "attention_dscores", s.square(), [=] SHARDPROOF_KERNEL(int64_t i) {
    const int64_t row = i / tokens;
    const bool seen = i % tokens <= row % tokens;
    ds[i] = seen ? rules.Rounded(dscore, p[i] * (ds[i] - dot[row])) : 0.0f;
  });
}

}  // namespace

void AttentionForward(const NodeContext& c) {
  const Shape s = ShapeOf(c);
  const float* qkv = c.In(c.spec.in[0]);
  float* out = c.Out(c.spec.out[0]);
  const Scratch<float> p(c.queue, s.square());
  Probabilities(c, qkv, p.get());
  MultiplySquare(c.queue, s, p.get(), false, s.Part(qkv, 2), s.Output(out), out);
  Round(c.queue, c.rules, grids::kActivation, out, s.tokens * s.inner);
}

void AttentionDgrad(const NodeContext& c) {
  const Shape s = ShapeOf(c);
  const float *qkv = c.In(c.spec.in[0]), *dout = c.Grad(c.spec.out[0]);
  float* dqkv = c.Grad(c.spec.in[0]);
  const Scratch<float> p(c.queue, s.square()), ds(c.queue, s.square());
  Probabilities(c, qkv, p.get());
  ScoreGradients(c, qkv, p.get(), dout, ds.get());
  float *dq = dqkv, *dk = dqkv + s.inner, *dv = dqkv + 2 * s.inner;
  // A key and a value at i are seen by the queries from i on: columns of ds and p.
  MultiplySquare(c.queue, s, ds.get(), false, s.Part(qkv, 1), s.Part(dqkv, 0), dq);
  MultiplySquare(c.queue, s, ds.get(), true, s.Part(qkv, 0), s.Part(dqkv, 1), dk);
  MultiplySquare(c.queue, s, p.get(), true, s.Output(dout), s.Part(dqkv, 2), dv);
  const Rules rules = c.rules;
  const Grid grid = rules.Scaled(grids::kDQkv);
  const int64_t inner = s.inner;
  ForEach(c.queue, "attention_dgrad", s.tokens * 3 * inner, [=] SHARDPROOF_KERNEL(int64_t i) {
    const bool value = i % (3 * inner) >= 2 * inner;
    dqkv[i] = rules.Rounded(grid, value ? dqkv[i] : kScale * dqkv[i]);
  });
}

}  // namespace shardproof::device
