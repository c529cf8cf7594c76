// attention.h: what does causal multi-head attention compute from its queries, keys and values?
#pragma once
#include "conformance/model/numerics.h"

namespace shardproof {

struct AttentionShape {
  int64_t tokens = 0, heads = 0, head_dim = 0;
};

// qkv (tokens, 3 * heads * head_dim): queries, keys, values, each by head. out (tokens, heads *
// head_dim).
void AttentionForward(const Numerics& n, const AttentionShape& s, const float* qkv, float* out);
// Runs the scores again: probabilities are no value of their own.
void AttentionDgrad(const Numerics& n, const AttentionShape& s, const float* qkv, const float* dout,
                    float* dqkv);

}  // namespace shardproof
