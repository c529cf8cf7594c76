#include "conformance/model/static_bound.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "conformance/model/grids.h"

namespace shardproof {
namespace {

constexpr double kExact = 16777216.0;   // 2^24
constexpr double kExactNarrow = 257.0;  // integers up to 256 are bf16 numbers

// n products of numbers on grids a and b, plus `more` quanta.
void Require(const std::string& sum, int64_t n, Grid a, Grid b, double more = 0) {
  const double total = static_cast<double>(n) * a.q * b.q + more;
  if (total < kExact) return;
  throw std::invalid_argument(sum + ": " + std::to_string(n) + " products of up to " +
                              std::to_string(a.q) + " * " + std::to_string(b.q) +
                              " quanta exceed 2^24, so the sum is not exact in every order; " +
                              "make it shorter");
}

// Of MoE layers. A token's choices are different experts, so an expert sees a token once at most,
// and bounds of parameter gradients over tokens hold for experts too.
void RequireExperts(const ModelConfig& config, const Dims& d) {
  using namespace grids;
  const MoeConfig& moe = config.moe;
  if (config.mtp) Require("linear forward over 2 * width", 2 * d.width, kActivation, kWeight);
  if (moe.experts == 0) return;
  const double stream = kResidual.q + kActivation.q;  // and a shared expert's output
  Require("a token's experts", moe.top_k, kActivation, {0, 1}, stream);
  Require("router softmax over experts", moe.experts, kNumerator, {0, 1});
  Require("router scores over the choices", moe.top_k, kScore, {0, 1});
  Require("router dgrad over experts", moe.experts, kDRouterLogits, kWeight);
  Require("gradient of a choice's probability over ffn", d.ffn, kDExpertAct, kActivation);
  Require("router dgrad over the choices", moe.top_k, kProbability, kDRowProbability);
  Require("load balancing over experts", moe.experts, kProbability,
          {0, static_cast<int32_t>(MoeSizesOf(config).tokens / moe.parts)});
  // What readers add to the gradient of their common input, on grids that differ by kDRouterIn's
  // finer quantum.
  Require("gradient of a router's input", moe.top_k + 2, {0, 1 << (kDDispatched.e - kDRouterIn.e)},
          kDDispatched);
}

void RequireForward(const Dims& d, bool biases) {
  using namespace grids;
  const double bias = biases ? std::ldexp(kWeight.q, -kActivation.e) : 0;
  Require("norm: sum of squares over width", d.width, kResidual, kResidual);
  Require("linear forward over width", d.width, kActivation, kWeight, bias);
  Require("linear forward over ffn", d.ffn, kActivation, kWeight, bias);
  Require("linear forward over the heads", d.inner(), kActivation, kWeight, bias);
  Require("attention scores over the head's size", d.head_dim, kActivation, kActivation);
  Require("attention softmax over sequence", d.whole_sequence(), kNumerator, {0, 1});
  Require("attention output over sequence", d.whole_sequence(), kProbability, kActivation);
  Require("loss softmax over vocab", d.vocab, kNumerator, {0, 1});
  Require("loss over sequence", d.sequence, kTokenLoss, {0, 1});
}

void RequireDgrad(const Dims& d) {
  using namespace grids;
  Require("linear dgrad over vocab", d.vocab, kDLogits, kWeight);
  Require("linear dgrad over 3 * width", 3 * d.inner(), kDQkv, kWeight);
  Require("linear dgrad over 2 * ffn", 2 * d.ffn, kDFc1, kWeight);
  Require("norm dgrad over width", d.width, kActivation, kDNormalised);
  Require("attention dgrad over sequence", d.whole_sequence(), kProbability, kDProbability);
}

void RequireWgrad(const ModelConfig& config, const Network& network, int64_t max_tokens) {
  const std::string how = "parameter gradient over " + std::to_string(max_tokens) +
                          " tokens of a step, " + std::to_string(network.most_uses()) +
                          " uses, odd divisor " + std::to_string(config.d_odd);
  const double terms = static_cast<double>(max_tokens) * network.most_uses() * config.d_odd;
  if (config.narrow) {
    if (terms < kExactNarrow) return;
    throw std::invalid_argument(
        how + ": their product " + std::to_string(static_cast<int64_t>(terms)) +
        " exceeds 256, so the sum is not exact in bf16; use fewer ranks, microbatches or tokens");
  }
  const auto operand = static_cast<double>(
      std::max({grids::kActivation.q, grids::kDLogits.q, grids::kDRouterLogits.q}));
  double total = terms * operand * operand;
  if (config.tied) {
    // The head's products, and the embedding's rows on a coarser grid, expressed in the head's
    // quanta.
    const int32_t quantum = grids::kActivation.e + grids::kDLogits.e;
    static_assert(grids::kDEmbedding.e >= grids::kActivation.e + grids::kDLogits.e);
    const double tokens = static_cast<double>(max_tokens) * config.d_odd;
    const double tied =
        tokens * (config.mtp ? 2 : 1) *
        (operand * operand + std::ldexp(grids::kDEmbedding.q, grids::kDEmbedding.e - quantum));
    total = std::max(config.reused ? total : 0.0, tied);
  }
  if (total < kExact) return;
  throw std::invalid_argument(
      how + ": up to " + std::to_string(static_cast<int64_t>(total)) +
      " quanta exceed 2^24, so the sum is not exact in every order; use fewer ranks, "
      "microbatches or tokens");
}

}  // namespace

void RequireExactSums(const ModelConfig& config, const Network& network, int64_t max_tokens) {
  if (!config.quantised) return;
  RequireForward(network.dims(), config.biases);
  RequireDgrad(network.dims());
  RequireExperts(config, network.dims());
  RequireWgrad(config, network, max_tokens);
}

}  // namespace shardproof
