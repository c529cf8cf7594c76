#include "conformance/model/cuda/vocabulary.h"

#include <limits>

#include "conformance/model/cuda/reduce.h"
#include "conformance/model/cuda/softmax.h"

namespace shardproof::device {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The range of the vocabulary that a rank has.
struct Range {
  int64_t first, rows, vocab;
  constexpr bool Known(int32_t token) const { return token >= 0 && token < vocab; }
  constexpr bool Own(int32_t token) const { return token >= first && token < first + rows; }
};

Range RangeOf(const NodeContext& c) { return {c.network.first_word(), c.d.local_vocab, c.d.vocab}; }

void LookUp(const NodeContext& c) {
  const Param embedding(c, c.spec.weight());
  const Range range = RangeOf(c);
  const int64_t width = c.d.width;
  const float* weight = embedding.get();
  const int32_t* tokens = c.Integers(c.spec.in[0]);
  float* h = c.Out(c.spec.out[0]);
  ForEach(c.queue, "vocabulary_lookup", c.Tokens() * width, [=] SHARDPROOF_KERNEL(int64_t i) {
    const int32_t token = tokens[i / width];
    const float none = range.Known(token) || range.first != 0 ? 0.0f : kNan;
    h[i] = range.Own(token) ? weight[(token - range.first) * width + i % width] : none;
  });
}

void EmbeddingStream(const NodeContext& c) {
  const Param positions(c, c.spec.bias());
  const Rules rules = c.rules;
  const float *sum = c.In(c.spec.in[0]), *position = positions.get();
  if (position != nullptr) position += (c.network.first_position() + c.FirstToken()) * c.d.width;
  float* h = c.Out(c.spec.out[0]);
  ForEach(c.queue, "vocabulary_stream", c.Tokens() * c.d.width, [=] SHARDPROOF_KERNEL(int64_t i) {
    h[i] = rules.Rounded(grids::kResidual, position == nullptr ? sum[i] : sum[i] + position[i]);
  });
}

void LossMax(const NodeContext& c) {
  const int64_t columns = c.d.local_vocab;
  const float* logits = c.In(c.spec.in[0]);
  RowMaxima(
      c.queue, "vocabulary_max", c.Tokens(), columns,
      [=] SHARDPROOF_KERNEL(int64_t t, int64_t v) { return logits[t * columns + v]; },
      c.Out(c.spec.out[0]));
}

// The largest of the maxima [ranks, tokens] of each token.
void TopsOf(const NodeContext& c, float* tops) {
  const int64_t tokens = c.Tokens();
  const float* maxima = c.In(c.spec.in[2]);
  RowMaxima(
      c.queue, "vocabulary_tops", tokens, c.d.tp,
      [=] SHARDPROOF_KERNEL(int64_t t, int64_t rank) { return maxima[rank * tokens + t]; }, tops);
}

void LossSums(const NodeContext& c) {
  const int64_t tokens = c.Tokens(), columns = c.d.local_vocab;
  const Scratch<float> of_tops(c.queue, tokens), of_sums(c.queue, tokens);
  const Rules rules = c.rules;
  const Range range = RangeOf(c);
  const float* logits = c.In(c.spec.in[0]);
  const int32_t* labels = c.Integers(c.spec.in[1]);
  float *tops = of_tops.get(), *sums = of_sums.get(), *out = c.Out(c.spec.out[0]);
  TopsOf(c, tops);
  RowSums(
      c.queue, "vocabulary_sums", tokens, columns,
      [=] SHARDPROOF_KERNEL(int64_t t, int64_t v) {
        return NumeratorOf(rules, grids::kNumerator, logits[t * columns + v], tops[t]);
      },
      sums);
  ForEach(c.queue, "vocabulary_pairs", tokens, [=] SHARDPROOF_KERNEL(int64_t t) {
    const float none = range.Known(labels[t]) ? 0.0f : kNan;
    out[2 * t] = sums[t];
    out[2 * t + 1] = range.Own(labels[t]) ? logits[t * columns + labels[t] - range.first] : none;
  });
}

void LossForward(const NodeContext& c) {
  const Scratch<float> of_tops(c.queue, c.Tokens());
  const Rules rules = c.rules;
  const float* sums = c.In(c.spec.in[3]);
  float* tops = of_tops.get();
  TopsOf(c, tops);
  RowSums(
      c.queue, "vocabulary_loss", 1, c.Tokens(),
      [=] SHARDPROOF_KERNEL(int64_t, int64_t t) {
        return rules.Rounded(grids::kTokenLoss, (Log(sums[2 * t]) + tops[t]) - sums[2 * t + 1]);
      },
      c.Out(c.spec.out[0]));
}

}  // namespace

void SplitVocabularyForward(const NodeContext& c) {
  switch (c.spec.op) {
    case Op::kEmbed:
      return LookUp(c);
    case Op::kEmbedStream:
      return EmbeddingStream(c);
    case Op::kLossMax:
      return LossMax(c);
    case Op::kLossSums:
      return LossSums(c);
    default:
      return LossForward(c);
  }
}

void SplitLossDgrad(const NodeContext& c) {
  const int64_t tokens = c.Tokens(), columns = c.d.local_vocab;
  const Scratch<float> of_tops(c.queue, tokens);
  const Rules rules = c.rules;
  const Range range = RangeOf(c);
  const Grid dlogit = rules.Scaled(grids::kDLogits);
  const float scale = PowerOfTwo(rules.scale_e);
  const float *logits = c.In(c.spec.in[0]), *sums = c.In(c.spec.in[3]);
  const int32_t* labels = c.Integers(c.spec.in[1]);
  float *tops = of_tops.get(), *dlogits = c.Grad(c.spec.in[0]);
  TopsOf(c, tops);
  ForEach(c.queue, "vocabulary_dgrad", tokens * columns, [=] SHARDPROOF_KERNEL(int64_t i) {
    const int64_t t = i / columns, v = i % columns + range.first;
    float p =
        rules.Rounded(grids::kProbability,
                      NumeratorOf(rules, grids::kNumerator, logits[i], tops[t]) / sums[2 * t]);
    if (v == labels[t]) p = p - 1.0f;
    if (!range.Known(labels[t]) && v == 0) p = kNan;
    dlogits[i] = rules.Rounded(dlogit, p * scale);
  });
}

}  // namespace shardproof::device
