// static_bound.h: is every sum of this model exact in fp32 whatever its order, and whatever the
// data?
#pragma once
#include "conformance/model/network.h"

namespace shardproof {

// Throws std::invalid_argument that names the sum and its numbers, unless sum over |a||b| < 2^24
// quanta holds for all sums of a step of max_tokens tokens (over all ranks and microbatches).
// Narrow profile: gradients up to 2^8.
void RequireExactSums(const ModelConfig& config, const Network& network, int64_t max_tokens);

}  // namespace shardproof
