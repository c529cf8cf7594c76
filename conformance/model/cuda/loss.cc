#include "conformance/model/cuda/loss.h"

#include <limits>

#include "conformance/model/cuda/reduce.h"
#include "conformance/model/cuda/softmax.h"

namespace shardproof::device {
namespace {

// The label of token t of the node's; -1: outside the vocabulary.
struct Labels {
  const int32_t* labels;
  int64_t tokens, vocab, first;
  constexpr int64_t operator()(int64_t t) const {
    const int32_t label = labels[(first + t) % tokens];
    return label >= 0 && label < vocab ? label : -1;
  }
};

Labels LabelsOf(const NodeContext& c) {
  return {c.Integers(c.spec.in[1]), c.d.sequence, c.d.vocab,
          c.spec.op == Op::kNextLoss ? 1 : c.FirstRow()};
}

}  // namespace

void LossForward(const NodeContext& c) {
  const int64_t tokens = c.Tokens(), vocab = c.d.vocab;
  const Scratch<float> of_tops(c.queue, tokens), of_sums(c.queue, tokens);
  const Rules rules = c.rules;
  const Grid grid = grids::kTokenLoss;
  const Labels label_of = LabelsOf(c);
  const float* logits = c.In(c.spec.in[0]);
  float *tops = of_tops.get(), *sums = of_sums.get(), *loss = c.Out(c.spec.out[0]);
  const Scratch<float> of_chunk(c.queue, 1);
  float* own = c.spec.AddsToLoss() ? of_chunk.get() : loss;
  SumNumerators(c.queue, rules, tokens, vocab, logits, tops, sums);
  RowSums(
      c.queue, "loss_forward", 1, tokens,
      [=] SHARDPROOF_KERNEL(int64_t, int64_t t) {
        const int64_t label = label_of(t);
        if (label < 0) return std::numeric_limits<float>::quiet_NaN();
        return rules.Rounded(grid, (Log(sums[t]) + tops[t]) - logits[t * vocab + label]);
      },
      own);
  if (own == loss) return;
  ForEach(c.queue, "loss_add", 1, [=] SHARDPROOF_KERNEL(int64_t) { loss[0] = loss[0] + own[0]; });
}

void LossDgrad(const NodeContext& c) {
  const int64_t tokens = c.Tokens(), vocab = c.d.vocab;
  const Scratch<float> of_tops(c.queue, tokens), of_sums(c.queue, tokens);
  const Rules rules = c.rules;
  const Grid numerator = grids::kNumerator, probability = grids::kProbability,
             dlogit = rules.Scaled(grids::kDLogits);
  const float scale = PowerOfTwo(rules.scale_e);
  const Labels label_of = LabelsOf(c);
  const float* logits = c.In(c.spec.in[0]);
  float *tops = of_tops.get(), *sums = of_sums.get(), *dlogits = c.Grad(c.spec.in[0]);
  SumNumerators(c.queue, rules, tokens, vocab, logits, tops, sums);
  ForEach(c.queue, "loss_dgrad", tokens * vocab, [=] SHARDPROOF_KERNEL(int64_t i) {
    const int64_t t = i / vocab, v = i % vocab, label = label_of(t);
    float p =
        rules.Rounded(probability, NumeratorOf(rules, numerator, logits[i], tops[t]) / sums[t]);
    if (v == label) p = p - 1.0f;
    if (label < 0 && v == 0) p = std::numeric_limits<float>::quiet_NaN();
    dlogits[i] = rules.Rounded(dlogit, p * scale);
  });
}

}  // namespace shardproof::device
