// attention.h: how is causal multi-head attention computed on a device?
#pragma once
#include "conformance/model/cuda/common.h"

namespace shardproof::device {

// Temporary memory: one (forward) or two (backward) matrices [heads, tokens, keys seen];
// backward of a part of the sequence one more [tokens, 3 inner].
void AttentionForward(const NodeContext& c);
void AttentionDgrad(const NodeContext& c);
void TakeKeysValues(const NodeContext& c);
void KeysValuesDgrad(const NodeContext& c);

}  // namespace shardproof::device
