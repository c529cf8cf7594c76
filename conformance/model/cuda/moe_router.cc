#include "conformance/model/cuda/moe_router.h"

namespace shardproof::device {
namespace {

TokenRouter RouterOf(const Rules& rules, const RouterRule& rule) {
  TokenRouter router;
  router.rules = rules;
  router.score = rule.score;
  router.experts = rule.experts;
  router.top_k = rule.top_k;
  router.groups = rule.groups;
  router.top_groups = rule.top_groups;
  return router;
}

const RouterRule& Valid(const RouterRule& rule) {
  RequireValid(rule);
  return rule;
}

void ChooseExperts(Queue& queue, const TokenRouter& r, int64_t tokens, const float* logits,
                   const float* bias, int32_t* chosen) {
  const Scratch<float> all_keys(queue, tokens * r.experts), all_scores(queue, tokens * r.groups);
  const Scratch<uint8_t> all_open(queue, tokens * r.experts),
      all_open_groups(queue, tokens * r.groups);
  float *keys = all_keys.get(), *scores = all_scores.get();
  uint8_t *open = all_open.get(), *open_groups = all_open_groups.get();
  const TokenRouter router = r;
  ForEach(queue, "choose_experts", tokens, [=] SHARDPROOF_KERNEL(int64_t t) {
    float* key = keys + t * router.experts;
    uint8_t* own = open + t * router.experts;
    SelectionKeys(router, logits + t * router.experts, bias, key);
    OpenExperts(router, key, scores + t * router.groups, own, open_groups + t * router.groups);
    for (int64_t c = 0; c < router.top_k; ++c)
      chosen[t * router.top_k + c] = TakeLargest(key, own, router.experts);
  });
}

void WeighAll(Queue& queue, const TokenRouter& r, int64_t tokens, const float* logits,
              const float* bias, const int32_t* chosen, float* probs) {
  const TokenRouter router = r;
  ForEach(queue, "weigh_choices", tokens, [=] SHARDPROOF_KERNEL(int64_t t) {
    const int32_t* own = chosen + t * router.top_k;
    float* prob = probs + t * router.top_k;
    WeighChoices(router, logits + t * router.experts, own, prob);
    // Adds zero; but poison in a bias shows even where it does not change the choice.
    for (int64_t c = 0; c < router.top_k && bias != nullptr; ++c)
      prob[c] = prob[c] + (bias[own[c]] - bias[own[c]]);
  });
}

// Drops what exceeds the capacity, by token position, and counts each expert's rows. A choice
// belongs to one expert, whose index alone writes it.
void ApplyCapacity(Queue& queue, const RouterRule& rule, const int32_t* chosen, float* probs,
                   int32_t* index, int64_t* counts) {
  const int64_t choices = rule.tokens * rule.top_k, most = rule.rows_per_expert();
  const bool drops = rule.capacity > 0, pad = rule.pad;
  ForEach(queue, "apply_capacity", rule.experts, [=] SHARDPROOF_KERNEL(int64_t e) {
    int64_t count = 0;
    for (int64_t i = 0; i < choices; ++i) {
      if (chosen[i] != e) continue;
      if (drops && count >= most) {
        index[i] = -1;
        probs[i] = 0;
      } else {
        index[i] = chosen[i];
        ++count;
      }
    }
    if (counts != nullptr) counts[e] = pad ? most : count;
  });
}

}  // namespace

Choices::Choices(Queue& queue, const Rules& rules, const RouterRule& rule, const RouterOperands& in)
    : selection_(queue, static_cast<int64_t>(Valid(rule).selection.size())),
      logits_(queue, rule.tokens * rule.experts),
      chosen_(queue, rule.tokens * rule.top_k),
      router_(RouterOf(rules, rule)) {
  if (!rule.selection.empty()) {
    queue.Upload(reinterpret_cast<std::byte*>(selection_.get()), rule.selection.data(),
                 rule.selection.size() * sizeof(float));
    router_.selection = selection_.get();
  }
  Gemm product;  // logits = x weight^T
  product.m = rule.tokens;
  product.n = rule.experts;
  product.k = rule.width;
  product.a = in.x;
  product.b = in.weight;
  product.b_transposed = true;
  product.c = logits_.get();
  queue.Multiply(product);
  ChooseExperts(queue, router_, rule.tokens, logits_.get(), in.bias, chosen_.get());
}

void RouterForward(Queue& queue, const Rules& rules, const RouterRule& rule,
                   const RouterOperands& in, float* probs, int32_t* index, int64_t* expert_counts) {
  const Choices choices(queue, rules, rule, in);
  WeighAll(queue, choices.router(), rule.tokens, choices.logits(), in.bias, choices.chosen(),
           probs);
  ApplyCapacity(queue, rule, choices.chosen(), probs, index, expert_counts);
}

}  // namespace shardproof::device
