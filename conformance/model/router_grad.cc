#include <algorithm>
#include <cmath>

#include "conformance/model/grids.h"
#include "conformance/model/linear.h"
#include "conformance/model/router.h"

namespace shardproof {
namespace {

// What one call needs again of the forward pass.
struct Recomputed {
  std::vector<float> logits;    // [T, E]
  std::vector<int32_t> chosen;  // [T, k], before the capacity
  std::vector<float> counts;    // [parts, E] tokens that chose each expert, before the capacity
};

Recomputed Recompute(const Numerics& n, const RouterRule& rule, const float* x, const float* weight,
                     const float* bias) {
  Recomputed r;
  r.logits = RouterLogits(n, rule, x, weight);
  r.chosen = ChooseExperts(rule, SelectionKeys(n, rule, r.logits, bias));
  r.counts.resize(static_cast<size_t>(rule.parts * rule.experts));
  const auto choices = static_cast<size_t>(rule.part_tokens() * rule.top_k);
  const auto experts = static_cast<size_t>(rule.experts);
  for (size_t i = 0; i < r.chosen.size(); ++i)
    r.counts[i / choices * experts + static_cast<size_t>(r.chosen[i])] += 1.0f;
  return r;
}

// sum of a[i] * b[i], exact; a on a grid of quantum 2^ae, b of 2^be.
float Dot(const Numerics& n, const char* name, const std::vector<float>& a,
          const std::vector<float>& b, int32_t e) {
  float sum = 0;
  double magnitude = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum = sum + a[i] * b[i];
    magnitude += std::fabs(a[i] * b[i]);
  }
  if (n.checks()) n.probe->CheckTotal(name, std::ldexp(magnitude, -e));
  return sum;
}

// By way of the weights of one token's choices. chosen: an expert per choice, dprobs 0 where
// dropped.
void AddTask(const Numerics& n, const RouterRule& rule, const float* logits,
             const std::vector<int32_t>& chosen, const std::vector<float>& dprobs, float* out) {
  const ChoiceWeights weights = WeighChoices(n, rule, logits, chosen.data());
  const int32_t e = grids::kProbability.e + n.Scaled(grids::kDRowProbability).e;
  const float dot = Dot(n, "router dgrad: choices", weights.weight, dprobs, e);
  const auto experts = static_cast<size_t>(rule.experts);
  const std::vector<float> row(logits, logits + experts);
  std::vector<float> p(experts);  // softmax or sigmoid of all logits
  if (rule.score == Score::kPreSoftmax) {
    Softmax(n, rule.experts, logits, p.data());
    for (size_t i = 0; i < experts; ++i) out[i] = out[i] - p[i] * dot;
  } else if (rule.score == Score::kSigmoid) {
    p = SigmoidScores(n, row);
  }
  for (size_t c = 0; c < chosen.size(); ++c) {
    if (chosen[c] < 0 || chosen[c] >= rule.experts) continue;
    const auto i = static_cast<size_t>(chosen[c]);
    if (rule.score == Score::kSoftmax) {
      out[i] = out[i] + weights.weight[c] * (dprobs[c] - dot);
    } else if (rule.score == Score::kPreSoftmax) {
      out[i] = out[i] + p[i] * dprobs[c];
    } else {
      float dscore = dprobs[c];
      if (rule.top_k > 1) dscore = weights.sum == 0 ? 0 : (dscore - dot) / weights.sum;
      out[i] = out[i] + dscore * (p[i] * (1.0f - p[i]));
    }
  }
}

// Load balancing: E c / (k T^2) * sum over experts of (sum over tokens of score) * count, counts
// constant. Scores: softmax over all experts, or sigmoids normalised over all.
void AddBalance(const Numerics& n, const RouterRule& rule, const float* logits,
                const std::vector<float>& counts, float aux_scale, float* out) {
  const auto experts = static_cast<size_t>(rule.experts);
  std::vector<float> p(experts), sigmoid;
  float sum = 1;
  if (rule.score == Score::kSigmoid) {
    sigmoid = SigmoidScores(n, std::vector<float>(logits, logits + experts));
    sum = 0;
    for (float score : sigmoid) sum = sum + score;
    if (sum == 0) return;
    for (size_t i = 0; i < experts; ++i) p[i] = sigmoid[i] / sum;
    n.Round(grids::kProbability, p.data(), rule.experts);
  } else {
    Softmax(n, rule.experts, logits, p.data());
  }
  const float dot = Dot(n, "router dgrad: load balancing", p, counts, grids::kProbability.e);
  const float factor = aux_scale * kBalanceCoefficient * static_cast<float>(rule.experts) /
                       static_cast<float>(rule.top_k * rule.part_tokens() * rule.part_tokens());
  for (size_t i = 0; i < experts; ++i) {
    float d = p[i] * (counts[i] - dot);
    if (rule.score == Score::kSigmoid)
      d = (counts[i] - dot) / sum * (sigmoid[i] * (1.0f - sigmoid[i]));
    out[i] = out[i] + d * factor;
  }
}

// c / T * sum over tokens of logsumexp^2.
void AddZ(const Numerics& n, const RouterRule& rule, const float* logits, float aux_scale,
          float* out) {
  std::vector<float> p(static_cast<size_t>(rule.experts));
  const SoftmaxRow row = Softmax(n, rule.experts, logits, p.data());
  const float logsumexp = Log(row.sum) + row.top;
  const float factor = aux_scale * kZCoefficient * 2.0f / static_cast<float>(rule.part_tokens());
  for (size_t i = 0; i < p.size(); ++i) out[i] = out[i] + p[i] * logsumexp * factor;
}

}  // namespace

std::vector<float> RouterLogitsGrad(const Numerics& n, const RouterRule& rule, const float* x,
                                    const float* weight, const float* bias, const int32_t* index,
                                    const float* dprobs, double aux_scale) {
  RequireValid(rule);
  const Recomputed r = Recompute(n, rule, x, weight, bias);
  const auto k = static_cast<size_t>(rule.top_k), experts = static_cast<size_t>(rule.experts);
  std::vector<float> grad(r.logits.size());
  std::vector<float> counts;  // of the part that the token is in
  for (size_t t = 0; t < static_cast<size_t>(rule.tokens); ++t) {
    const auto of_part = static_cast<int64_t>(t) / rule.part_tokens() * rule.experts;
    counts.assign(r.counts.begin() + of_part, r.counts.begin() + of_part + rule.experts);
    const float* logits = &r.logits[t * experts];
    float* out = &grad[t * experts];
    std::vector<int32_t> chosen(index + t * k, index + (t + 1) * k);
    std::vector<float> dchosen(dprobs + t * k, dprobs + (t + 1) * k);
    for (size_t c = 0; c < k; ++c) {
      if (chosen[c] >= 0) continue;
      chosen[c] = r.chosen[t * k + c];  // dropped: a weight that the others were normalised with
      dchosen[c] = 0;
    }
    AddTask(n, rule, logits, chosen, dchosen, out);
    const auto scale = static_cast<float>(aux_scale);
    if (rule.aux_loss) AddBalance(n, rule, logits, counts, scale, out);
    if (rule.z_loss) AddZ(n, rule, logits, scale, out);
    for (size_t e = 0; e < experts && bias != nullptr; ++e) out[e] = out[e] + (bias[e] - bias[e]);
  }
  n.RoundGrad(grids::kDRouterLogits, grad.data(), static_cast<int64_t>(grad.size()));
  return grad;
}

void RouterDgrad(const Numerics& n, const RouterRule& rule, const float* x, const float* weight,
                 const float* bias, const int32_t* index, const float* dprobs, double aux_scale,
                 float* dx) {
  const std::vector<float> dlogits =
      RouterLogitsGrad(n, rule, x, weight, bias, index, dprobs, aux_scale);
  std::vector<float> own(static_cast<size_t>(rule.tokens * rule.width));
  LinearDgrad(n, {rule.tokens, rule.width, rule.experts}, dlogits.data(), grids::kDRouterLogits,
              weight, grids::kDRouterIn, own.data());
  for (size_t i = 0; i < own.size(); ++i) dx[i] = dx[i] + own[i];
}

void RouterWgrad(const Numerics& n, const RouterRule& rule, const float* x, const float* weight,
                 const float* bias, const int32_t* index, const float* dprobs, double aux_scale,
                 const GradTarget& grad) {
  const std::vector<float> dlogits =
      RouterLogitsGrad(n, rule, x, weight, bias, index, dprobs, aux_scale);
  LinearWgrad(n, {rule.tokens, rule.width, rule.experts}, x, dlogits.data(), grids::kDRouterLogits,
              grad);
}

}  // namespace shardproof
