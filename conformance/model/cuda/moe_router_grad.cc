// moe_router.h: the backward pass. Operations in the order of router_grad.cc.
#include "conformance/model/cuda/moe_router.h"
#include "conformance/model/router.h"

namespace shardproof::device {
namespace {

// One token's part of d(task + auxiliary losses) / d logits.
struct LogitsGrad {
  TokenRouter router;
  bool balanced = false, with_z = false;
  float balance = 0, z = 0;  // factors of the auxiliary losses
  // [E] tokens that chose each expert, before the capacity; if balanced.
  const float* counts = nullptr;

  // An expert's part of a softmax, or of normalised sigmoids.
  SHARDPROOF_KERNEL float Share(bool sigmoid, float logit, const RowOfSoftmax& row) const {
    return router.Fraction(sigmoid ? router.Sigmoid(logit) : router.Numerator(logit, row.top),
                           row.sum);
  }

  // By way of the weights of the token's choices. chosen: an expert per choice; dchosen 0 where
  // dropped. weight: [k], for its own use.
  SHARDPROOF_KERNEL void AddTask(const float* logits, const int32_t* chosen, const float* dchosen,
                                 float* weight, float* out) const {
    const TokenRouter& r = router;
    const float sum = WeighChoices(r, logits, chosen, weight);
    float dot = 0;
    for (int64_t c = 0; c < r.top_k; ++c) dot = dot + weight[c] * dchosen[c];
    RowOfSoftmax row;
    if (r.score == Score::kPreSoftmax) {
      row = SoftmaxOfAll(r, logits);
      for (int64_t e = 0; e < r.experts; ++e) out[e] = out[e] - Share(false, logits[e], row) * dot;
    }
    for (int64_t c = 0; c < r.top_k; ++c) {
      const int32_t e = chosen[c];
      if (!r.Knows(e)) continue;
      if (r.score == Score::kSoftmax) {
        out[e] = out[e] + weight[c] * (dchosen[c] - dot);
      } else if (r.score == Score::kPreSoftmax) {
        out[e] = out[e] + Share(false, logits[e], row) * dchosen[c];
      } else {
        const float p = r.Sigmoid(logits[e]);
        float dscore = dchosen[c];
        if (r.top_k > 1) dscore = sum == 0 ? 0 : (dscore - dot) / sum;
        out[e] = out[e] + dscore * (p * (1.0f - p));
      }
    }
  }

  // Load balancing. Scores: softmax over all experts, or sigmoids normalised over all.
  SHARDPROOF_KERNEL void AddBalance(const float* logits, float* out) const {
    const TokenRouter& r = router;
    const bool sigmoid = r.score == Score::kSigmoid;
    RowOfSoftmax row;
    if (sigmoid) {
      for (int64_t e = 0; e < r.experts; ++e) row.sum = row.sum + r.Sigmoid(logits[e]);
      if (row.sum == 0) return;
    } else {
      row = SoftmaxOfAll(r, logits);
    }
    float dot = 0;
    for (int64_t e = 0; e < r.experts; ++e) dot = dot + Share(sigmoid, logits[e], row) * counts[e];
    for (int64_t e = 0; e < r.experts; ++e) {
      float d = Share(sigmoid, logits[e], row) * (counts[e] - dot);
      if (sigmoid) {
        const float p = r.Sigmoid(logits[e]);
        d = (counts[e] - dot) / row.sum * (p * (1.0f - p));
      }
      out[e] = out[e] + d * balance;
    }
  }

  SHARDPROOF_KERNEL void AddZ(const float* logits, float* out) const {
    const RowOfSoftmax row = SoftmaxOfAll(router, logits);
    const float logsumexp = Log(row.sum) + row.top;
    for (int64_t e = 0; e < router.experts; ++e)
      out[e] = out[e] + Share(false, logits[e], row) * logsumexp * z;
  }
};

// counts[e] = how many of n choices are of expert e.
void CountChoices(Queue& queue, int64_t experts, int64_t n, const int32_t* chosen, float* counts) {
  ForEach(queue, "count_choices", experts, [=] SHARDPROOF_KERNEL(int64_t e) {
    float count = 0;
    for (int64_t i = 0; i < n; ++i) count = chosen[i] == e ? count + 1.0f : count;
    counts[e] = count;
  });
}

LogitsGrad GradOf(const TokenRouter& router, const RouterRule& rule, double aux_scale,
                  const float* counts) {
  LogitsGrad grad;
  grad.router = router;
  grad.balanced = rule.aux_loss;
  grad.with_z = rule.z_loss;
  grad.counts = counts;
  const auto scale = static_cast<float>(aux_scale);
  grad.balance = scale * kBalanceCoefficient * static_cast<float>(rule.experts) /
                 static_cast<float>(rule.top_k * rule.tokens * rule.tokens);
  grad.z = scale * kZCoefficient * 2.0f / static_cast<float>(rule.tokens);
  return grad;
}

// [T, E], on its grid.
void RouterLogitsGrad(Queue& queue, const Rules& rules, const RouterRule& rule,
                      const RouterOperands& in, const int32_t* index, const float* dprobs,
                      double aux_scale, float* dlogits) {
  const Choices choices(queue, rules, rule, in);
  const int64_t experts = rule.experts, k = rule.top_k, n = rule.tokens * k;
  const Scratch<float> counts(queue, rule.aux_loss ? experts : 0), all_dchosen(queue, n),
      all_weights(queue, n);
  if (rule.aux_loss) CountChoices(queue, experts, n, choices.chosen(), counts.get());
  const LogitsGrad grad = GradOf(choices.router(), rule, aux_scale, counts.get());
  const float *all_logits = choices.logits(), *bias = in.bias;
  int32_t* all_chosen = choices.chosen();
  float *dchosens = all_dchosen.get(), *weights = all_weights.get();
  const Grid grid = rules.Scaled(grids::kDRouterLogits);
  ForEach(queue, "router_logits_grad", rule.tokens, [=] SHARDPROOF_KERNEL(int64_t t) {
    const float* logits = all_logits + t * experts;
    float *out = dlogits + t * experts, *dchosen = dchosens + t * k;
    int32_t* chosen = all_chosen + t * k;
    for (int64_t c = 0; c < k; ++c) {  // dropped: a weight that the others were normalised with
      const int32_t kept = index[t * k + c];
      dchosen[c] = kept >= 0 ? dprobs[t * k + c] : 0.0f;
      chosen[c] = kept >= 0 ? kept : chosen[c];
    }
    for (int64_t e = 0; e < experts; ++e) out[e] = 0;
    grad.AddTask(logits, chosen, dchosen, weights + t * k, out);
    if (grad.balanced) grad.AddBalance(logits, out);
    if (grad.with_z) grad.AddZ(logits, out);
    for (int64_t e = 0; e < experts; ++e) {
      if (bias != nullptr) out[e] = out[e] + (bias[e] - bias[e]);
      out[e] = grad.router.rules.Rounded(grid, out[e]);
    }
  });
}

}  // namespace

void RouterDgrad(Queue& queue, const Rules& rules, const RouterRule& rule, const RouterOperands& in,
                 const int32_t* index, const float* dprobs, double aux_scale, float* dx) {
  const int64_t count = rule.tokens * rule.width;
  const Scratch<float> dlogits(queue, rule.tokens * rule.experts), scratch(queue, count);
  RouterLogitsGrad(queue, rules, rule, in, index, dprobs, aux_scale, dlogits.get());
  float* own = scratch.get();
  Gemm product;  // own = dlogits weight
  product.m = rule.tokens;
  product.n = rule.width;
  product.k = rule.experts;
  product.a = dlogits.get();
  product.b = in.weight;
  product.c = own;
  queue.Multiply(product);
  const Rules r = rules;
  const Grid grid = rules.Scaled(grids::kDRouterIn);
  ForEach(queue, "router_dgrad", count,
          [=] SHARDPROOF_KERNEL(int64_t i) { dx[i] = dx[i] + r.Rounded(grid, own[i]); });
}

void RouterWgrad(Queue& queue, const Rules& rules, const RouterRule& rule, const RouterOperands& in,
                 const int32_t* index, const float* dprobs, double aux_scale, GradTarget grad) {
  const Scratch<float> dlogits(queue, rule.tokens * rule.experts),
      sums(queue, rule.experts * rule.width);
  RouterLogitsGrad(queue, rules, rule, in, index, dprobs, aux_scale, dlogits.get());
  const GradOperand x(queue, rules, in.x, rule.tokens * rule.width, grids::kActivation);
  const GradOperand dy(queue, rules, dlogits.get(), rule.tokens * rule.experts,
                       rules.Scaled(grids::kDRouterLogits));
  Gemm product;  // sums = dlogits^T x
  product.m = rule.experts;
  product.n = rule.width;
  product.k = rule.tokens;
  product.a = dy.get();
  product.a_transposed = true;
  product.b = x.get();
  product.c = sums.get();
  queue.Multiply(product);
  AddGrad(queue, rules, grad, sums.get(), rule.experts * rule.width);
}

}  // namespace shardproof::device
