#include "conformance/model/cuda/embedding.h"

#include <limits>
#include <vector>

#include "conformance/model/cuda/reduce.h"
#include "conformance/model/data.h"

namespace shardproof::device {
namespace {

constexpr bool Known(int32_t token, int64_t vocab) { return token >= 0 && token < vocab; }

// The gradient of h [tokens, width] as the parameters' gradients take it.
void TakeStreamGrad(const NodeContext& c, int64_t tokens, float* to) {
  const Rules rules = c.rules;
  const Grid grid = rules.Scaled(grids::kDEmbedding);
  const float* dh = c.Grad(c.spec.grad_out());
  ForEach(c.queue, "embedding_operand", tokens * c.d.width, [=] SHARDPROOF_KERNEL(int64_t i) {
    to[i] = rules.Operand(rules.Rounded(grid, dh[i]), grid);
  });
}

// next[t]: where the token at t comes again, or -1. first[t]: whether it comes at t for the first
// time.
void ChainEqualTokens(const NodeContext& c, const int32_t* tokens, int32_t* next, int32_t* first) {
  const auto n = static_cast<int32_t>(c.d.sequence);
  ForEach(c.queue, "embedding_chain", n, [=] SHARDPROOF_KERNEL(int64_t i) {
    const auto t = static_cast<int32_t>(i);
    int32_t after = t + 1, before = t - 1;
    while (after < n && tokens[after] != tokens[t]) ++after;
    while (before >= 0 && tokens[before] != tokens[t]) --before;
    next[t] = after < n ? after : -1;
    first[t] = before < 0;
  });
}

// NaN into the first element if a token is outside the vocabulary.
void PoisonByUnknownTokens(const NodeContext& c, const int32_t* tokens, float* sums) {
  const int64_t vocab = c.d.vocab;
  const Scratch<float> scratch(c.queue, 1);
  float* poison = scratch.get();
  RowSums(
      c.queue, "embedding_unknown", 1, c.d.sequence,
      [=] SHARDPROOF_KERNEL(int64_t, int64_t t) {
        return Known(tokens[t], vocab) ? 0.0f : std::numeric_limits<float>::quiet_NaN();
      },
      poison);
  ForEach(c.queue, "embedding_poison", 1,
          [=] SHARDPROOF_KERNEL(int64_t) { sums[0] = sums[0] + poison[0]; });
}

// The sums over equal tokens are no atomic additions: each has one index, which walks from token to
// token.
void WeightGrad(const NodeContext& c, const float* dh) {
  const int64_t tokens = c.d.sequence, rows = c.d.local_vocab, width = c.d.width;
  const int64_t numel = rows * width, begin = c.network.first_word();
  const int32_t* token = c.Integers(c.spec.in[0]);
  const Scratch<int32_t> chain(c.queue, tokens), starts(c.queue, tokens);
  int32_t *next = chain.get(), *first = starts.get();
  ChainEqualTokens(c, token, next, first);
  const Scratch<float> scratch(c.queue, numel);
  float* sums = scratch.get();
  ForEach(c.queue, "embedding_zero", numel, [=] SHARDPROOF_KERNEL(int64_t i) { sums[i] = 0; });
  ForEach(c.queue, "embedding_wgrad", tokens * width, [=] SHARDPROOF_KERNEL(int64_t i) {
    const auto t = static_cast<int32_t>(i / width);
    const int64_t column = i % width;
    const int64_t row = token[t] - begin;  // of this rank's range of the vocabulary
    if (first[t] == 0 || row < 0 || row >= rows) return;
    float sum = 0;
    for (int32_t u = t; u >= 0; u = next[u]) sum = sum + dh[u * width + column];
    sums[row * width + column] = sum;
  });
  if (begin == 0) PoisonByUnknownTokens(c, token, sums);
  AddGrad(c.queue, c.rules, c.Target(c.spec.weight()), sums, numel);
}

}  // namespace

void InputForward(const NodeContext& c) {
  const auto n = static_cast<size_t>(c.d.sequence);
  std::vector<int32_t> tokens(n), labels(n);
  FillSample({static_cast<int32_t>(c.d.vocab), static_cast<int32_t>(c.d.sequence), c.config.seed,
              c.config.nan_loss},
             c.args.step, c.args.sample, tokens.data(), labels.data());
  const std::vector<int32_t>* values[] = {&tokens, &labels};
  for (size_t i = 0; i < 2; ++i) {
    if (c.spec.out[i] < 0) continue;
    auto* to = reinterpret_cast<std::byte*>(c.Integers(c.spec.out[i]));
    c.queue.Upload(to, values[i]->data(), n * sizeof(int32_t));
  }
}

void EmbeddingForward(const NodeContext& c) {
  const Param embedding(c, c.spec.weight()), positions(c, c.spec.bias());
  const Rules rules = c.rules;
  const Grid grid = grids::kResidual;
  const int64_t width = c.d.width, vocab = c.d.vocab;
  const float *weight = embedding.get(), *position = positions.get();
  if (position != nullptr) position += (c.network.first_position() + c.FirstToken()) * width;
  const int32_t* tokens = c.Integers(c.spec.in[0]) + c.FirstToken();
  float* h = c.Out(c.spec.out[0]);
  ForEach(c.queue, "embedding_forward", c.Tokens() * width, [=] SHARDPROOF_KERNEL(int64_t i) {
    const int32_t token = tokens[i / width];
    const float value = Known(token, vocab) ? weight[token * width + i % width]
                                            : std::numeric_limits<float>::quiet_NaN();
    h[i] = rules.Rounded(grid, position == nullptr ? value : value + position[i]);
  });
}

void EmbeddingWgrad(const NodeContext& c) {
  // What adds positions of a part of the sequence to a split embedding has the part's tokens.
  const bool split = c.spec.op == Op::kEmbedStream;
  const int64_t tokens = split ? c.Tokens() : c.d.sequence, n = tokens * c.d.width;
  const Scratch<float> dh(c.queue, n);
  TakeStreamGrad(c, tokens, dh.get());
  if (c.spec.grad_weight) WeightGrad(c, dh.get());
  if (!c.spec.grad_bias) return;
  const int64_t first = c.network.first_position() + (split ? c.FirstToken() : 0);
  AddGrad(c.queue, c.rules, c.Target(c.spec.bias()).From(first * c.d.width), dh.get(), n);
}

}  // namespace shardproof::device
