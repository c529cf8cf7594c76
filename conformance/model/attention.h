// attention.h: what does causal multi-head attention compute from its queries, keys and values?
#pragma once
#include "conformance/model/numerics.h"

namespace shardproof {

struct AttentionShape {
  int64_t tokens = 0, heads = 0, head_dim = 0;
  bool by_head = false;  // qkv: by head, each queries, keys, values; else each of these by head

  int64_t inner() const { return heads * head_dim; }
  int64_t head_step() const { return by_head ? 3 * head_dim : head_dim; }  // from head to head
  int64_t part_step() const { return by_head ? head_dim : inner(); }       // from queries to keys
};

// qkv (tokens, 3 * heads * head_dim). out (tokens, heads * head_dim).
void AttentionForward(const Numerics& n, const AttentionShape& s, const float* qkv, float* out);
// Runs the scores again: probabilities are no value of their own.
void AttentionDgrad(const Numerics& n, const AttentionShape& s, const float* qkv, const float* dout,
                    float* dqkv);

}  // namespace shardproof
