#include "conformance/model/cuda/attention.h"

#include <limits>

#include "conformance/model/cuda/reduce.h"
#include "conformance/model/cuda/softmax.h"

namespace shardproof::device {
namespace {

constexpr float kScale = 0.25f;  // of scores; a power of two whatever the head's size

// A matrix for each head: [tokens, head_dim] inside a value's rows, or [tokens, tokens]. In
// elements.
struct Layout {
  int64_t row, head;  // from a row to the next, from a head to the next
};
struct Operand {
  const float* data;
  Layout layout;
};

// qkv [tokens, 3 inner]: queries, keys, values, each by head; or by head, each of these. The output
// [tokens, inner]: by head.
struct Shape {
  int64_t tokens, heads, dim, inner;
  bool by_head;
  Layout qkv() const { return {3 * inner, by_head ? 3 * dim : dim}; }
  int64_t part() const { return by_head ? dim : inner; }  // from queries to keys

  Layout output() const { return {inner, dim}; }
  Layout square() const { return {tokens, tokens * tokens}; }
  int64_t square_elems() const { return heads * tokens * tokens; }
};

Shape ShapeOf(const NodeContext& c) {
  const int64_t heads = c.spec.split ? c.d.local_heads() : c.d.heads;
  return {c.d.sequence, heads, c.d.head_dim, heads * c.d.head_dim, c.spec.split};
}

// A product for each head, with `tokens` rows; n, k and what is transposed are left to set.
Gemm ByHead(const Shape& s, Operand a, Operand b, float* c, Layout layout) {
  Gemm gemm;
  gemm.m = s.tokens;
  gemm.a = a.data;
  gemm.b = b.data;
  gemm.c = c;
  gemm.a_stride = a.layout.row;
  gemm.b_stride = b.layout.row;
  gemm.c_stride = layout.row;
  gemm.batch = s.heads;
  gemm.a_step = a.layout.head;
  gemm.b_step = b.layout.head;
  gemm.c_step = layout.head;
  return gemm;
}

// c [heads, tokens, tokens] = a b^T, of rows [tokens, dim].
void MultiplyRows(Queue& queue, const Shape& s, Operand a, Operand b, float* c) {
  Gemm gemm = ByHead(s, a, b, c, s.square());
  gemm.n = s.tokens;
  gemm.k = s.dim;
  gemm.b_transposed = true;
  queue.Multiply(gemm);
}

// c [tokens, dim] = p b, or p^T b, of p [heads, tokens, tokens], which is zero above the diagonal.
void MultiplySquare(Queue& queue, const Shape& s, const float* p, bool transposed, Operand b,
                    float* c, Layout layout) {
  Gemm gemm = ByHead(s, {p, s.square()}, b, c, layout);
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
  MultiplyRows(c.queue, s, {qkv, s.qkv()}, {qkv + s.part(), s.qkv()}, p);
  // exp of minus infinity is below every grid, and nothing beside the 1 of the largest score.
  ForEach(c.queue, "attention_scores", s.square_elems(), [=] SHARDPROOF_KERNEL(int64_t i) {
    const bool seen = i % tokens <= i / tokens % tokens;
    p[i] = seen ? kScale * p[i] : -std::numeric_limits<float>::infinity();
  });
  const Scratch<float> of_tops(c.queue, s.heads * tokens), of_sums(c.queue, s.heads * tokens);
  float *tops = of_tops.get(), *sums = of_sums.get();
  SumNumerators(c.queue, rules, s.heads * tokens, tokens, p, tops, sums);
  ForEach(c.queue, "attention_probabilities", s.square_elems(), [=] SHARDPROOF_KERNEL(int64_t i) {
    const int64_t row = i / tokens;
    const bool seen = i % tokens <= row % tokens;
    p[i] = seen ? rules.Rounded(probability,
                                NumeratorOf(rules, numerator, p[i], tops[row]) / sums[row])
                : 0.0f;
  });
}

// ds [heads, tokens, tokens]: gradient of the scaled scores, zero above the diagonal.
void ScoreGradients(const NodeContext& c, const float* qkv, const float* p, const float* dout,
                    float* ds) {
  const Shape s = ShapeOf(c);
  const int64_t tokens = s.tokens;
  const Rules rules = c.rules;
  const Grid dprobability = rules.Scaled(grids::kDProbability),
             dscore = rules.Scaled(grids::kDScore);
  MultiplyRows(c.queue, s, {dout, s.output()}, {qkv + 2 * s.part(), s.qkv()}, ds);
  Round(c.queue, rules, dprobability, ds, s.square_elems());
  const Scratch<float> of_dot(c.queue, s.heads * tokens);
  float* dot = of_dot.get();
  RowSums(
      c.queue, "attention_dot", s.heads * tokens, tokens,
      [=] SHARDPROOF_KERNEL(int64_t row, int64_t j) {
        return j <= row % tokens ? p[row * tokens + j] * ds[row * tokens + j] : 0.0f;
      },
      dot);
  ForEach(c.queue, "attention_dscores", s.square_elems(), [=] SHARDPROOF_KERNEL(int64_t i) {
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
  const Scratch<float> p(c.queue, s.square_elems());
  Probabilities(c, qkv, p.get());
  MultiplySquare(c.queue, s, p.get(), false, {qkv + 2 * s.part(), s.qkv()}, out, s.output());
  Round(c.queue, c.rules, grids::kActivation, out, s.tokens * s.inner);
}

void AttentionDgrad(const NodeContext& c) {
  const Shape s = ShapeOf(c);
  const float *qkv = c.In(c.spec.in[0]), *dout = c.Grad(c.spec.out[0]);
  float* dqkv = c.Grad(c.spec.in[0]);
  const Scratch<float> p(c.queue, s.square_elems()), ds(c.queue, s.square_elems());
  Probabilities(c, qkv, p.get());
  ScoreGradients(c, qkv, p.get(), dout, ds.get());
  const float *q = qkv, *k = qkv + s.part();
  float *dq = dqkv, *dk = dqkv + s.part(), *dv = dqkv + 2 * s.part();
  // A key and a value at i are seen by the queries from i on: columns of ds and p.
  MultiplySquare(c.queue, s, ds.get(), false, {k, s.qkv()}, dq, s.qkv());
  MultiplySquare(c.queue, s, ds.get(), true, {q, s.qkv()}, dk, s.qkv());
  MultiplySquare(c.queue, s, p.get(), true, {dout, s.output()}, dv, s.qkv());
  const Rules rules = c.rules;
  const Grid grid = rules.Scaled(grids::kDQkv);
  // Of each run of queries, keys and values (of a head, or of all) the last third.
  const int64_t run = s.part();
  ForEach(c.queue, "attention_dgrad", s.tokens * 3 * s.inner, [=] SHARDPROOF_KERNEL(int64_t i) {
    const bool value = i % (3 * run) >= 2 * run;
    dqkv[i] = rules.Rounded(grid, value ? dqkv[i] : kScale * dqkv[i]);
  });
}

}  // namespace shardproof::device
