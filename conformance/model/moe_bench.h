// moe_bench.h: for tests: what does a routed layer compute on any number of expert-parallel ranks?
//
// Runs router, permutation, exchanges, experts and their backward passes in one process, the ranks
// one after the other; exchanges are copies of stretches of rows.
#pragma once
#include <random>
#include <vector>

#include "conformance/model/moe_kernels.h"

namespace shardproof {

using Floats = std::vector<float>;

Floats OnGrid(std::mt19937& random, int64_t n, Grid grid);
Floats Normal(std::mt19937& random, int64_t n);

using Indices = std::vector<int32_t>;

// 8 tokens, width 16, 8 experts.
RouterRule SmallRule(Score score = Score::kSoftmax, int64_t k = 2);

// A router's operands; bias only with sigmoid scores.
struct RouterCase {
  RouterRule rule;
  std::mt19937 random{11};
  Floats x, weight, bias, dprobs;
  explicit RouterCase(const RouterRule& rule);
  float Logit(int64_t token, int64_t expert) const;
};

struct Routed {
  Floats probs;
  Indices index;
  std::vector<int64_t> counts;
};
Routed Route(const Numerics& n, const RouterRule& rule, const Floats& x, const Floats& weight,
             const Floats& bias);

struct RouterGrads {
  Floats dx, dweight;
};
RouterGrads RouterBackward(const Numerics& n, const RouterRule& rule, const RouterCase& c,
                           const Indices& index, const Floats& dprobs, double aux_scale);

struct MoeLayer {
  RouterRule rule;
  int64_t ffn = 0;
  bool biases = false;
  Floats router, bias;                               // bias only with sigmoid scores
  std::vector<Floats> fc1, fc1_bias, fc2, fc2_bias;  // by expert
  const float* router_bias() const { return bias.empty() ? nullptr : bias.data(); }
};
MoeLayer RandomLayer(const RouterRule& rule, int64_t ffn, bool biases, std::mt19937& random);

struct MoeSample {
  Floats x, shared, residual, dout;
};
MoeSample RandomSample(const RouterRule& rule, std::mt19937& random);

struct MoeResult {
  // By sample.
  std::vector<Floats> probs, out, dprobs, dx, dshared, dresidual;
  std::vector<Indices> index;
  // Summed over samples.
  Floats router;
  std::vector<Floats> fc1, fc1_bias, fc2, fc2_bias;
  bool operator==(const MoeResult&) const = default;
};

// Forward and backward of all samples, in the order given, `ranks` of them at a time, one on each
// rank. ranks divides the number of samples and the experts.
MoeResult RunMoe(const Numerics& n, const MoeLayer& layer, const std::vector<MoeSample>& samples,
                 const std::vector<size_t>& order, int64_t ranks);

}  // namespace shardproof
