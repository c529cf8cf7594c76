// embedding.h: how are the nodes that begin a program computed on a device? h = E[token] (+
// P[position]).
#pragma once
#include "conformance/model/cuda/common.h"

namespace shardproof::device {

// Tokens and labels: computed on the host, a pure function of step and sample.
void InputForward(const NodeContext& c);
void EmbeddingForward(const NodeContext& c);
void EmbeddingWgrad(const NodeContext& c);

}  // namespace shardproof::device
