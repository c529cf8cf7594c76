// crossings.h: which communication brings something of ranks that hold other shards?
#pragma once
#include <cstdint>

#include "conformance/checks/base/analysis.h"

namespace shardproof {

// The event is communication of a rank with ranks of other shards, in whatever group, that it
// receives something from: neither of experts, which go over the ranks of tp where each of them
// routes a part of the sequence, nor a sum of gradients of parts of the sequence.
bool BringsOtherShards(const Analysis& a, int32_t rank, int64_t index);

}  // namespace shardproof
