// early_buckets.h: is a bucket of gradients complete while there is backward of others to compute?
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "conformance/trace/event.h"

namespace shardproof::graph {

// Whether in some entry call a block is written for the last time by backward of one layer, and
// backward of another is computed after that: a reduction of the block can run beside it. `blocks`:
// by entry call, those that reductions receive in. layer_of: the name of the layer that a node
// of the model is of, or of its module where it is in none. A block that no compute of the call
// writes (a launch may have filled it) shows nothing against it: true.
bool SomeBucketIsEarly(const Trace& trace, int32_t instance,
                       const std::map<int32_t, std::set<int32_t>>& blocks,
                       const std::function<std::string(int32_t node)>& layer_of);

}  // namespace shardproof::graph
