#include "conformance/model/router.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "conformance/model/grids.h"
#include "conformance/model/linear.h"

namespace shardproof {
namespace {

void Require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument("router: " + what);
}

// The `count` largest of those keys whose index is allowed, largest first, ties to the lower index.
// Comparisons with NaN are false, so poison still gives distinct indices.
std::vector<int32_t> Largest(const float* keys, const std::vector<bool>& allowed, int64_t count) {
  std::vector<bool> open = allowed;
  std::vector<int32_t> picked;
  for (int64_t c = 0; c < count; ++c) {
    int32_t best = -1;
    for (size_t e = 0; e < open.size(); ++e) {
      if (open[e] && (best < 0 || keys[e] > keys[best])) best = static_cast<int32_t>(e);
    }
    if (best < 0) break;
    open[static_cast<size_t>(best)] = false;
    picked.push_back(best);
  }
  return picked;
}

// Experts of the best groups; a group counts as much as the sum of its k / top_groups best keys.
std::vector<bool> AllowedExperts(const RouterRule& rule, const float* keys) {
  const auto experts = static_cast<size_t>(rule.experts);
  const auto groups = static_cast<size_t>(rule.groups), size = experts / groups;
  if (rule.top_groups == rule.groups) return std::vector<bool>(experts, true);
  std::vector<float> scores(groups);
  for (size_t g = 0; g < groups; ++g) {
    const float* group = keys + g * size;
    for (int32_t e : Largest(group, std::vector<bool>(size, true), rule.top_k / rule.top_groups))
      scores[g] = scores[g] + group[e];
  }
  std::vector<bool> allowed(experts, false);
  for (int32_t g : Largest(scores.data(), std::vector<bool>(groups, true), rule.top_groups)) {
    for (size_t e = 0; e < size; ++e) allowed[static_cast<size_t>(g) * size + e] = true;
  }
  return allowed;
}

// Drops what exceeds the capacity, by token position, and counts each expert's rows.
void ApplyCapacity(const RouterRule& rule, float* probs, int32_t* index, int64_t* counts) {
  std::fill(counts, counts + rule.experts, 0);
  const int64_t most = rule.rows_per_expert() / rule.parts,
                choices = rule.part_tokens() * rule.top_k;
  std::vector<int64_t> of_part(static_cast<size_t>(rule.experts));
  for (int64_t i = 0; i < rule.parts * choices; ++i) {
    if (i % choices == 0) std::fill(of_part.begin(), of_part.end(), 0);
    int64_t& count = of_part[static_cast<size_t>(index[i])];
    if (rule.capacity > 0 && count >= most) {
      index[i] = -1;
      probs[i] = 0;
    } else {
      ++count;
      ++counts[index[i]];
    }
  }
  if (rule.pad) std::fill(counts, counts + rule.experts, rule.rows_per_expert());
}

}  // namespace

int64_t ExpertCapacity(int64_t tokens, int64_t top_k, int64_t experts, int64_t percent) {
  const int64_t parts = experts * 100;
  return std::min((tokens * top_k * percent + parts - 1) / parts, tokens);
}

void RequireValid(const RouterRule& rule) {
  Require(rule.tokens > 0 && rule.width > 0, "tokens and width must be positive");
  Require(rule.parts > 0 && rule.tokens % rule.parts == 0,
          "parts is " + std::to_string(rule.parts) + ", must divide the " +
              std::to_string(rule.tokens) + " tokens");
  Require(
      rule.top_k >= 1 && rule.top_k <= rule.experts,
      "top_k is " + std::to_string(rule.top_k) + ", must be 1.." + std::to_string(rule.experts));
  Require(rule.groups >= 1 && rule.experts % rule.groups == 0,
          "groups is " + std::to_string(rule.groups) + ", must divide the " +
              std::to_string(rule.experts) + " experts");
  Require(
      rule.top_groups >= 1 && rule.top_groups <= rule.groups && rule.top_k % rule.top_groups == 0,
      "top_groups is " + std::to_string(rule.top_groups) +
          ", must be at most groups and divide"
          " top_k");
  Require(rule.top_k / rule.top_groups <= rule.experts / rule.groups,
          "top_k / top_groups exceeds the experts of a group");
  Require(rule.capacity >= 0 && (!rule.pad || rule.capacity > 0),
          "capacity is " + std::to_string(rule.capacity) + ", must be positive to pad");
  Require(
      rule.selection.empty() || static_cast<int64_t>(rule.selection.size()) == rule.experts,
      "selection has " + std::to_string(rule.selection.size()) + " entries, not one per expert");
}

std::vector<float> RouterLogits(const Numerics& n, const RouterRule& rule, const float* x,
                                const float* weight) {
  std::vector<float> logits(static_cast<size_t>(rule.tokens * rule.experts));
  LinearForward(n, {rule.tokens, rule.width, rule.experts}, x, weight, nullptr, logits.data());
  return logits;
}

std::vector<float> SigmoidScores(const Numerics& n, const std::vector<float>& logits) {
  std::vector<float> scores(logits.size());
  for (size_t i = 0; i < scores.size(); ++i) scores[i] = 1.0f / (1.0f + Exp(-logits[i]));
  n.Round(grids::kScore, scores.data(), static_cast<int64_t>(scores.size()));
  return scores;
}

SoftmaxRow Softmax(const Numerics& n, int64_t count, const float* logits, float* probabilities) {
  SoftmaxRow row;
  row.top = logits[0];
  for (int64_t i = 1; i < count; ++i) row.top = logits[i] > row.top ? logits[i] : row.top;
  for (int64_t i = 0; i < count; ++i) probabilities[i] = Exp(logits[i] - row.top);
  n.Round(grids::kNumerator, probabilities, count);
  for (int64_t i = 0; i < count; ++i) row.sum = row.sum + probabilities[i];
  if (n.checks()) n.probe->CheckTotal("router softmax", std::ldexp(row.sum, -grids::kNumerator.e));
  for (int64_t i = 0; i < count; ++i) probabilities[i] = probabilities[i] / row.sum;
  n.Round(grids::kProbability, probabilities, count);
  return row;
}

std::vector<float> SelectionKeys(const Numerics& n, const RouterRule& rule,
                                 const std::vector<float>& logits, const float* bias) {
  const auto experts = static_cast<size_t>(rule.experts);
  std::vector<float> keys = logits;
  if (rule.score == Score::kSigmoid) keys = SigmoidScores(n, logits);
  for (size_t row = 0; row < keys.size() && rule.score == Score::kPreSoftmax; row += experts) {
    const float top = *std::max_element(&logits[row], &logits[row] + experts);
    for (size_t e = 0; e < experts; ++e)
      keys[row + e] = n.Rounded(grids::kNumerator, Exp(logits[row + e] - top));
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    if (rule.score == Score::kSigmoid) keys[i] = keys[i] + bias[i % experts];
    if (!rule.selection.empty()) keys[i] = keys[i] + rule.selection[i % experts];
  }
  return keys;
}

std::vector<int32_t> ChooseExperts(const RouterRule& rule, const std::vector<float>& keys) {
  std::vector<int32_t> chosen;
  for (int64_t t = 0; t < rule.tokens; ++t) {
    const float* row = &keys[static_cast<size_t>(t * rule.experts)];
    const std::vector<int32_t> best = Largest(row, AllowedExperts(rule, row), rule.top_k);
    chosen.insert(chosen.end(), best.begin(), best.end());
  }
  return chosen;
}

ChoiceWeights WeighChoices(const Numerics& n, const RouterRule& rule, const float* logits,
                           const int32_t* chosen) {
  const auto k = static_cast<size_t>(rule.top_k), experts = static_cast<size_t>(rule.experts);
  ChoiceWeights weights{std::vector<float>(k), 0};
  // Logits, or scores, or probabilities, by expert.
  std::vector<float> of(logits, logits + experts);
  if (rule.score == Score::kPreSoftmax) Softmax(n, rule.experts, logits, of.data());
  if (rule.score == Score::kSigmoid) of = SigmoidScores(n, of);
  std::vector<float> taken;
  std::vector<size_t> slots;
  for (size_t c = 0; c < k; ++c) {
    if (chosen[c] < 0 || chosen[c] >= rule.experts) continue;
    slots.push_back(c);
    taken.push_back(of[static_cast<size_t>(chosen[c])]);
  }
  const auto count = static_cast<int64_t>(taken.size());
  if (count == 0) return weights;
  if (rule.score == Score::kSoftmax) {
    const std::vector<float> chosen_logits = taken;
    Softmax(n, count, chosen_logits.data(), taken.data());
  } else if (rule.score == Score::kSigmoid) {
    for (float score : taken) weights.sum = weights.sum + score;
    if (n.checks()) n.probe->CheckTotal("router scores", std::ldexp(weights.sum, -grids::kScore.e));
    for (float& score : taken)
      if (k > 1) score = weights.sum == 0 ? 0 : score / weights.sum;
    n.Round(grids::kProbability, taken.data(), count);
  }
  for (size_t i = 0; i < slots.size(); ++i) weights.weight[slots[i]] = taken[i];
  return weights;
}

void RouterForward(const Numerics& n, const RouterRule& rule, const float* x, const float* weight,
                   const float* bias, float* probs, int32_t* index, int64_t* expert_counts) {
  RequireValid(rule);
  const std::vector<float> logits = RouterLogits(n, rule, x, weight);
  const std::vector<int32_t> chosen = ChooseExperts(rule, SelectionKeys(n, rule, logits, bias));
  std::copy(chosen.begin(), chosen.end(), index);
  for (int64_t t = 0; t < rule.tokens; ++t) {
    const ChoiceWeights weights = WeighChoices(
        n, rule, &logits[static_cast<size_t>(t * rule.experts)], index + t * rule.top_k);
    for (int64_t c = 0; c < rule.top_k; ++c) {
      float& prob = probs[t * rule.top_k + c];
      prob = weights.weight[static_cast<size_t>(c)];
      // Adds zero; but poison in a bias shows even where it does not change the choice.
      if (bias != nullptr) {
        const float b = bias[index[t * rule.top_k + c]];
        prob = prob + (b - b);
      }
    }
  }
  ApplyCapacity(rule, probs, index, expert_counts);
}

}  // namespace shardproof
