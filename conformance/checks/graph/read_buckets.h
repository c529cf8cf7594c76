// read_buckets.h: do modules compute with several of the buckets that a step gathers?
#pragma once
#include <cstdint>
#include <map>
#include <set>

#include "conformance/checks/base/facts.h"
#include "conformance/trace/event.h"

namespace shardproof::graph {

// By entry call, then by bucket: keys of the parameters that its gathers brought.
using BucketKeys = std::map<int32_t, std::map<int32_t, std::set<int32_t>>>;

// Whether in some entry call forward of the first microbatch on the trace's rank reads parameters
// of two buckets: the second one can travel beside the compute of the first. Where modules go
// unused that may not be. All are there before the first gradient (LW-18), so later microbatches do
// not count.
bool TwoBucketsAreRead(const Trace& trace, int32_t instance, const BucketKeys& keys,
                       const InstanceFacts& facts);

}  // namespace shardproof::graph
