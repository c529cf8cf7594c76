#include "conformance/model/cuda/attention.h"

#include <limits>

#include "conformance/model/cuda/reduce.h"
#include "conformance/model/cuda/softmax.h"

namespace shardproof::device {
namespace {

constexpr float kScale = 0.25f;  // of scores; a power of two whatever the head's size

// A matrix for each head: [tokens, head_dim] inside a value's rows, or [tokens, keys]. In elements.
struct Layout {
  int64_t row, head;  // from a row to the next, from a head to the next
};
template <typename T>
struct Of {
  T* data;
  Layout layout;
};
using Operand = Of<const float>;
using Result = Of<float>;
template <typename T>
struct Parts {
  Of<T> q, k, v;
};

// qkv [tokens, 3 inner]: queries, keys, values, each by head; or by head, each of these. The output
// [tokens, inner]: by head. Of a part of the sequence, which begins at `first`, keys and values of
// all of it lie apart, [sequence, 2 inner], of which the first `keys` are seen.
struct Shape {
  int64_t tokens, heads, dim, inner;
  bool by_head;
  int64_t keys, first;
  bool apart;
  Layout qkv() const { return {3 * inner, by_head ? 3 * dim : dim}; }
  Layout kv() const { return {2 * inner, by_head ? 2 * dim : dim}; }
  int64_t part() const { return by_head ? dim : inner; }  // from queries to keys

  Layout output() const { return {inner, dim}; }
  Layout square() const { return {keys, tokens * keys}; }
  int64_t square_elems() const { return heads * tokens * keys; }

  template <typename T>
  Parts<T> PartsOf(T* of_qkv, T* of_kv) const {
    T* k = apart ? of_kv : of_qkv + part();
    const Layout layout = apart ? kv() : qkv();
    return {{of_qkv, qkv()}, {k, layout}, {k + part(), layout}};
  }
};

Shape ShapeOf(const NodeContext& c) {
  const int64_t heads = c.spec.split ? c.d.local_heads() : c.d.heads;
  const bool apart = c.spec.op == Op::kAttention && c.spec.in[1] >= 0;
  return {c.d.sequence,
          heads,
          c.d.head_dim,
          heads * c.d.head_dim,
          c.spec.split,
          c.d.sequence + (apart ? c.network.first_position() : 0),
          apart ? c.network.first_position() : 0,
          apart};
}

Parts<const float> PartsOf(const NodeContext& c) {
  const Shape s = ShapeOf(c);
  return s.PartsOf(c.In(c.spec.in[0]), s.apart ? c.In(c.spec.in[1]) : nullptr);
}

// A product for each head; m, n, k and what is transposed are left to set.
Gemm ByHead(const Shape& s, Operand a, Operand b, Result c) {
  Gemm gemm;
  gemm.a = a.data;
  gemm.b = b.data;
  gemm.c = c.data;
  gemm.a_stride = a.layout.row;
  gemm.b_stride = b.layout.row;
  gemm.c_stride = c.layout.row;
  gemm.batch = s.heads;
  gemm.a_step = a.layout.head;
  gemm.b_step = b.layout.head;
  gemm.c_step = c.layout.head;
  return gemm;
}

// c [heads, tokens, keys] = a b^T, of rows [tokens, dim] and [keys, dim].
void MultiplyRows(Queue& queue, const Shape& s, Operand a, Operand b, float* c) {
  Gemm gemm = ByHead(s, a, b, {c, s.square()});
  gemm.m = s.tokens;
  gemm.n = s.keys;
  gemm.k = s.dim;
  gemm.b_transposed = true;
  queue.Multiply(gemm);
}

// c [tokens, dim] = p b, or [keys, dim] = p^T b, of p [heads, tokens, keys], which is zero for keys
// that a query does not see.
void MultiplySquare(Queue& queue, const Shape& s, const float* p, bool transposed, Operand b,
                    Result c) {
  Gemm gemm = ByHead(s, {p, s.square()}, b, c);
  gemm.m = transposed ? s.keys : s.tokens;
  gemm.n = s.dim;
  gemm.k = transposed ? s.tokens : s.keys;
  gemm.a_transposed = transposed;
  queue.Multiply(gemm);
}

// p [heads, tokens, keys], zero for keys that a query does not see.
void Probabilities(const NodeContext& c, const Parts<const float>& in, float* p) {
  const Shape s = ShapeOf(c);
  const int64_t tokens = s.tokens, keys = s.keys, first = s.first;
  const Rules rules = c.rules;
  const Grid numerator = grids::kNumerator, probability = grids::kProbability;
  MultiplyRows(c.queue, s, in.q, in.k, p);
  // exp of minus infinity is below every grid, and nothing beside the 1 of the largest score.
  ForEach(c.queue, "attention_scores", s.square_elems(), [=] SHARDPROOF_KERNEL(int64_t i) {
    const bool seen = i % keys <= first + i / keys % tokens;
    p[i] = seen ? kScale * p[i] : -std::numeric_limits<float>::infinity();
  });
  const Scratch<float> of_tops(c.queue, s.heads * tokens), of_sums(c.queue, s.heads * tokens);
  float *tops = of_tops.get(), *sums = of_sums.get();
  SumNumerators(c.queue, rules, s.heads * tokens, keys, p, tops, sums);
  ForEach(c.queue, "attention_probabilities", s.square_elems(), [=] SHARDPROOF_KERNEL(int64_t i) {
    const int64_t row = i / keys;
    const bool seen = i % keys <= first + row % tokens;
    p[i] = seen ? rules.Rounded(probability,
                                NumeratorOf(rules, numerator, p[i], tops[row]) / sums[row])
                : 0.0f;
  });
}

// ds [heads, tokens, keys]: gradient of the scaled scores, zero for keys that a query does not see.
void ScoreGradients(const NodeContext& c, Operand v, const float* p, const float* dout, float* ds) {
  const Shape s = ShapeOf(c);
  const int64_t tokens = s.tokens, keys = s.keys, first = s.first;
  const Rules rules = c.rules;
  const Grid dprobability = rules.Scaled(grids::kDProbability),
             dscore = rules.Scaled(grids::kDScore);
  MultiplyRows(c.queue, s, {dout, s.output()}, v, ds);
  Round(c.queue, rules, dprobability, ds, s.square_elems());
  const Scratch<float> of_dot(c.queue, s.heads * tokens);
  float* dot = of_dot.get();
  RowSums(
      c.queue, "attention_dot", s.heads * tokens, keys,
      [=] SHARDPROOF_KERNEL(int64_t row, int64_t j) {
        return j <= first + row % tokens ? p[row * keys + j] * ds[row * keys + j] : 0.0f;
      },
      dot);
  ForEach(c.queue, "attention_dscores", s.square_elems(), [=] SHARDPROOF_KERNEL(int64_t i) {
    const int64_t row = i / keys;
    const bool seen = i % keys <= first + row % tokens;
    ds[i] = seen ? rules.Rounded(dscore, p[i] * (ds[i] - dot[row])) : 0.0f;
  });
}

// What queries, keys and values get, before any grid. A key and a value are seen by the queries
// from theirs on: columns of ds and p.
void Gradients(const NodeContext& c, const Parts<float>& out) {
  const Shape s = ShapeOf(c);
  const float* dout = c.Grad(c.spec.out[0]);
  const Parts<const float> in = PartsOf(c);
  const Scratch<float> p(c.queue, s.square_elems()), ds(c.queue, s.square_elems());
  Probabilities(c, in, p.get());
  ScoreGradients(c, in.v, p.get(), dout, ds.get());
  MultiplySquare(c.queue, s, ds.get(), false, in.k, out.q);
  MultiplySquare(c.queue, s, ds.get(), true, in.q, out.k);
  MultiplySquare(c.queue, s, p.get(), true, {dout, s.output()}, out.v);
}

// Of a part: adds to the queries' gradient; that of keys and values stays a summand, on no grid.
void DgradOfPart(const NodeContext& c) {
  const Shape s = ShapeOf(c);
  const int64_t inner = s.inner, elems = s.tokens * 3 * inner, run = s.part();
  const Scratch<float> own(c.queue, elems);
  float *sum = own.get(), *dqkv = c.Grad(c.spec.in[0]), *dkv = c.Grad(c.spec.in[1]);
  Gradients(c, s.PartsOf(sum, dkv));
  const Rules rules = c.rules;
  const Grid grid = rules.Scaled(grids::kDQkv);
  ForEach(c.queue, "attention_dqueries", elems, [=] SHARDPROOF_KERNEL(int64_t i) {
    if (i % (3 * run) < run) dqkv[i] = dqkv[i] + rules.Rounded(grid, kScale * sum[i]);
  });
  const int64_t seen = s.keys * 2 * inner;
  ForEach(c.queue, "attention_dkeys", c.d.whole_sequence() * 2 * inner,
          [=] SHARDPROOF_KERNEL(int64_t i) {
            if (i >= seen) {
              dkv[i] = 0;
            } else if (i % (2 * run) < run) {
              dkv[i] = kScale * dkv[i];
            }
          });
}

}  // namespace

void AttentionForward(const NodeContext& c) {
  const Shape s = ShapeOf(c);
  const Parts<const float> in = PartsOf(c);
  float* out = c.Out(c.spec.out[0]);
  const Scratch<float> p(c.queue, s.square_elems());
  Probabilities(c, in, p.get());
  MultiplySquare(c.queue, s, p.get(), false, in.v, {out, s.output()});
  Round(c.queue, c.rules, grids::kActivation, out, s.tokens * s.inner);
}

void AttentionDgrad(const NodeContext& c) {
  const Shape s = ShapeOf(c);
  if (s.apart) return DgradOfPart(c);
  float* dqkv = c.Grad(c.spec.in[0]);
  Gradients(c, s.PartsOf(dqkv, static_cast<float*>(nullptr)));
  const Rules rules = c.rules;
  const Grid grid = rules.Scaled(grids::kDQkv);
  // Of each run of queries, keys and values (of a head, or of all) the last third.
  const int64_t run = s.part();
  ForEach(c.queue, "attention_dgrad", s.tokens * 3 * s.inner, [=] SHARDPROOF_KERNEL(int64_t i) {
    const bool value = i % (3 * run) >= 2 * run;
    dqkv[i] = rules.Rounded(grid, value ? dqkv[i] : kScale * dqkv[i]);
  });
}

void TakeKeysValues(const NodeContext& c) {
  const Shape s = ShapeOf(c);
  const int64_t run = s.part();
  const float* qkv = c.In(c.spec.in[0]);
  float* kv = c.Out(c.spec.out[0]);
  ForEach(c.queue, "keys_values", s.tokens * 2 * s.inner, [=] SHARDPROOF_KERNEL(int64_t i) {
    kv[i] = qkv[i / (2 * run) * 3 * run + run + i % (2 * run)];
  });
}

void KeysValuesDgrad(const NodeContext& c) {
  const Shape s = ShapeOf(c);
  const int64_t run = s.part();
  const Rules rules = c.rules;
  const Grid grid = rules.Scaled(grids::kDQkv);
  const float* dkv = c.Grad(c.spec.out[0]);
  float* dqkv = c.Grad(c.spec.in[0]);
  ForEach(c.queue, "keys_values_dgrad", s.tokens * 2 * s.inner, [=] SHARDPROOF_KERNEL(int64_t i) {
    const int64_t to = i / (2 * run) * 3 * run + run + i % (2 * run);
    dqkv[to] = dqkv[to] + rules.Rounded(grid, dkv[i]);
  });
}

}  // namespace shardproof::device
