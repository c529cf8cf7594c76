// moe_token.h: what does a router compute for one token, as device code?
//
// router.cc operation by operation, for one index of a kernel; what a std::vector holds there lies
// in memory that the caller hands in. Logits of a token are [E], choices [k].
#pragma once
#include <cstdint>

#include "conformance/model/cuda/common.h"
#include "conformance/model/moe_kernels.h"

namespace shardproof::device {

// A RouterRule as kernels capture it.
struct TokenRouter {
  Rules rules;
  Score score = Score::kSoftmax;
  int64_t experts = 0, top_k = 0, groups = 1, top_groups = 1;
  const float* selection = nullptr;  // [E], on the device; null: none
  // Device code cannot name constants of class type.
  Grid on_numerators = grids::kNumerator, on_probabilities = grids::kProbability,
       on_scores = grids::kScore;

  SHARDPROOF_KERNEL bool Knows(int32_t e) const { return e >= 0 && e < experts; }
  SHARDPROOF_KERNEL float Sigmoid(float logit) const {
    return rules.Rounded(on_scores, 1.0f / (1.0f + Exp(-logit)));
  }
  SHARDPROOF_KERNEL float Numerator(float logit, float top) const {
    return rules.Rounded(on_numerators, Exp(logit - top));
  }
  SHARDPROOF_KERNEL float Fraction(float part, float sum) const {
    return rules.Rounded(on_probabilities, part / sum);
  }
};

// Of a softmax: the largest logit; the sum of exp(logit - top).
struct RowOfSoftmax {
  float top = 0, sum = 0;
};

SHARDPROOF_KERNEL inline RowOfSoftmax SoftmaxOfAll(const TokenRouter& r, const float* logits) {
  RowOfSoftmax row{logits[0], 0};
  for (int64_t e = 1; e < r.experts; ++e) row.top = logits[e] > row.top ? logits[e] : row.top;
  for (int64_t e = 0; e < r.experts; ++e) row.sum = row.sum + r.Numerator(logits[e], row.top);
  return row;
}

// Over those of the chosen experts that are experts.
SHARDPROOF_KERNEL inline RowOfSoftmax SoftmaxOfChosen(const TokenRouter& r, const float* logits,
                                                      const int32_t* chosen) {
  RowOfSoftmax row;
  bool any = false;
  for (int64_t c = 0; c < r.top_k; ++c) {
    if (!r.Knows(chosen[c])) continue;
    const float logit = logits[chosen[c]];
    row.top = !any || logit > row.top ? logit : row.top;
    any = true;
  }
  for (int64_t c = 0; c < r.top_k; ++c) {
    if (r.Knows(chosen[c])) row.sum = row.sum + r.Numerator(logits[chosen[c]], row.top);
  }
  return row;
}

// The largest of n keys that are open, ties to the lower index, and closes it. -1: none is open.
SHARDPROOF_KERNEL inline int32_t TakeLargest(const float* keys, uint8_t* open, int64_t n) {
  int32_t best = -1;
  for (int64_t e = 0; e < n; ++e) {
    if (open[e] != 0 && (best < 0 || keys[e] > keys[best])) best = static_cast<int32_t>(e);
  }
  if (best >= 0) open[best] = 0;
  return best;
}

// Opens the experts of the best groups. scores, open_groups: [groups], for its own use.
SHARDPROOF_KERNEL inline void OpenExperts(const TokenRouter& r, const float* keys, float* scores,
                                          uint8_t* open, uint8_t* open_groups) {
  for (int64_t e = 0; e < r.experts; ++e) open[e] = 1;
  if (r.top_groups == r.groups) return;
  const int64_t size = r.experts / r.groups;
  for (int64_t g = 0; g < r.groups; ++g) {
    scores[g] = 0;
    open_groups[g] = 1;
    for (int64_t c = 0; c < r.top_k / r.top_groups; ++c) {
      const int32_t e = TakeLargest(keys + g * size, open + g * size, size);
      if (e >= 0) scores[g] = scores[g] + keys[g * size + e];
    }
  }
  for (int64_t e = 0; e < r.experts; ++e) open[e] = 0;
  for (int64_t c = 0; c < r.top_groups; ++c) {
    const int32_t g = TakeLargest(scores, open_groups, r.groups);
    for (int64_t e = 0; g >= 0 && e < size; ++e) open[g * size + e] = 1;
  }
}

// What the choice is made by, to keys [E]. bias [E] only with sigmoid scores.
SHARDPROOF_KERNEL inline void SelectionKeys(const TokenRouter& r, const float* logits,
                                            const float* bias, float* keys) {
  float top = logits[0];
  for (int64_t e = 1; e < r.experts; ++e) top = top < logits[e] ? logits[e] : top;
  for (int64_t e = 0; e < r.experts; ++e) {
    float key = logits[e];
    if (r.score == Score::kPreSoftmax) key = r.Numerator(key, top);
    if (r.score == Score::kSigmoid) key = r.Sigmoid(key) + bias[e];
    if (r.selection != nullptr) key = key + r.selection[e];
    keys[e] = key;
  }
}

// Writes the weights [k] of a token's choices, whatever is dropped later, and returns the sum that
// sigmoid scores are divided by (k > 1). `chosen` may hold anything: what is no expert weighs
// nothing.
SHARDPROOF_KERNEL inline float WeighChoices(const TokenRouter& r, const float* logits,
                                            const int32_t* chosen, float* weight) {
  RowOfSoftmax row;
  if (r.score == Score::kSoftmax) row = SoftmaxOfChosen(r, logits, chosen);
  if (r.score == Score::kPreSoftmax) row = SoftmaxOfAll(r, logits);
  float sum = 0;
  for (int64_t c = 0; c < r.top_k && r.score == Score::kSigmoid; ++c) {
    if (r.Knows(chosen[c])) sum = sum + r.Sigmoid(logits[chosen[c]]);
  }
  for (int64_t c = 0; c < r.top_k; ++c) {
    weight[c] = 0;
    if (!r.Knows(chosen[c])) continue;
    const float logit = logits[chosen[c]];
    if (r.score != Score::kSigmoid) {
      weight[c] = r.Fraction(r.Numerator(logit, row.top), row.sum);
    } else {
      float score = r.Sigmoid(logit);
      if (r.top_k > 1) score = sum == 0 ? 0 : score / sum;
      weight[c] = r.rules.Rounded(r.on_probabilities, score);
    }
  }
  return sum;
}

}  // namespace shardproof::device
