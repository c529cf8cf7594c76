// attention.h: what does causal multi-head attention compute from its queries, keys and values?
#pragma once
#include "conformance/model/numerics.h"

namespace shardproof {

struct AttentionShape {
  int64_t tokens = 0, heads = 0, head_dim = 0;
  bool by_head = false;  // qkv: by head, each queries, keys, values; else each of these by head
  // Of a part of the sequence: keys and values of all of it lie apart, and the part's first token
  // is the first-th.
  int64_t keys = 0, first = 0;

  bool apart() const { return keys > 0; }
  int64_t key_count() const { return apart() ? keys : tokens; }
  int64_t inner() const { return heads * head_dim; }
  // parts: 3 of queries, keys and values, 2 of keys and values.
  int64_t head_step(int64_t parts = 3) const {  // from head to head
    return by_head ? parts * head_dim : head_dim;
  }
  int64_t part_step() const { return by_head ? head_dim : inner(); }  // from queries to keys
};

// qkv (tokens, 3 * heads * head_dim). kv (keys, 2 * heads * head_dim) where they lie apart. out
// (tokens, heads * head_dim).
void AttentionForward(const Numerics& n, const AttentionShape& s, const float* qkv, const float* kv,
                      float* out);
// Runs the scores again: probabilities are no value of their own. Apart: adds to the queries'
// gradient in dqkv; dkv is what these queries contribute to it, on no grid yet.
void AttentionDgrad(const Numerics& n, const AttentionShape& s, const float* qkv, const float* kv,
                    const float* dout, float* dqkv, float* dkv);

// kv (tokens, 2 * inner): the keys and values of qkv. And back: adds their gradient to qkv's.
void TakeKeysValues(const AttentionShape& s, const float* qkv, float* kv);
void AddKeysValuesGrad(const Numerics& n, const AttentionShape& s, const float* dkv, float* dqkv);

}  // namespace shardproof
