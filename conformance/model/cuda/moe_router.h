// moe_router.h: which experts does each token choose, and what does the choice weigh, on a device?
//
// Routers of moe_kernels.h, with their shapes, on device pointers. One index a token, or an expert
// where an order counts.
#pragma once
#include "conformance/model/cuda/common.h"
#include "conformance/model/cuda/moe_token.h"

namespace shardproof::device {

// What a router reads in every phase, as nodes use it: x [T, width], weight [E, width], bias [E] or
// null.
struct RouterOperands {
  const float *x = nullptr, *weight = nullptr, *bias = nullptr;
};

// probs [T, k], index [T, k], expert_counts [E] or null: nobody asks.
void RouterForward(Queue& queue, const Rules& rules, const RouterRule& rule,
                   const RouterOperands& in, float* probs, int32_t* index, int64_t* expert_counts);
// dx is added to.
void RouterDgrad(Queue& queue, const Rules& rules, const RouterRule& rule, const RouterOperands& in,
                 const int32_t* index, const float* dprobs, double aux_scale, float* dx);
void RouterWgrad(Queue& queue, const Rules& rules, const RouterRule& rule, const RouterOperands& in,
                 const int32_t* index, const float* dprobs, double aux_scale, GradTarget grad);

// The choices of one sample: what both passes begin with. Memory of its own, in the queue's order.
class Choices {
 public:
  // Throws std::invalid_argument for a rule that is none (RequireValid).
  Choices(Queue& queue, const Rules& rules, const RouterRule& rule, const RouterOperands& in);
  const TokenRouter& router() const { return router_; }
  const float* logits() const { return logits_.get(); }  // [T, E]
  int32_t* chosen() const { return chosen_.get(); }      // [T, k], before any capacity

 private:
  Scratch<float> selection_, logits_;
  Scratch<int32_t> chosen_;
  TokenRouter router_;
};

}  // namespace shardproof::device
