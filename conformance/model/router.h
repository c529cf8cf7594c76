// router.h: which experts does each token choose, and what does the choice weigh?
//
// Pieces shared by the router's forward and backward pass (router.cc, router_grad.cc); nodes use
// moe_kernels.h.
#pragma once
#include "conformance/model/moe_kernels.h"

namespace shardproof {

// logits [T, E], exact sums that nothing multiplies: not on a coarser grid.
std::vector<float> RouterLogits(const Numerics& n, const RouterRule& rule, const float* x,
                                const float* weight);
// Sigmoid of each logit, on the grid of scores.
std::vector<float> SigmoidScores(const Numerics& n, const std::vector<float>& logits);

struct SoftmaxRow {
  float top = 0, sum = 0;  // the largest logit; the sum of exp(logit - top), at least 1
};
// Softmax of count logits, on the grid of probabilities.
SoftmaxRow Softmax(const Numerics& n, int64_t count, const float* logits, float* probabilities);

// The chosen experts [T, k] before any capacity, most preferred first. keys [T, E].
std::vector<int32_t> ChooseExperts(const RouterRule& rule, const std::vector<float>& keys);
// What the choice is made by: logits, exp(logit - max), or sigmoid + bias; plus rule.selection.
std::vector<float> SelectionKeys(const Numerics& n, const RouterRule& rule,
                                 const std::vector<float>& logits, const float* bias);

// Weights of one token's k chosen experts on the grid of probabilities, whatever is dropped later.
// `chosen` may hold anything: what is no expert weighs nothing.
struct ChoiceWeights {
  std::vector<float> weight;  // [k]
  float sum = 0;              // sigmoid, k > 1: of the chosen scores, the divisor
};
ChoiceWeights WeighChoices(const Numerics& n, const RouterRule& rule, const float* logits,
                           const int32_t* chosen);

// d(task + auxiliary losses) / d logits, [T, E], on its grid.
std::vector<float> RouterLogitsGrad(const Numerics& n, const RouterRule& rule, const float* x,
                                    const float* weight, const float* bias, const int32_t* index,
                                    const float* dprobs, double aux_scale);

// Coefficients of the auxiliary losses: powers of two, large enough to be seen beside the task's
// gradient.
inline constexpr float kZCoefficient = 0.125f;
inline constexpr float kBalanceCoefficient = 2;

}  // namespace shardproof
