// replicate.h: how does a recorded run become one of a million events?
#pragma once
#include <cstdint>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof::graph {

// Each rank's events again and again until there are at least `events` in all. Streams and groups
// stay the same ones (created once, destroyed once); allocations, events and calls get new numbers
// in each copy.
std::vector<Trace> Replicate(const std::vector<Trace>& traces, int64_t events);

// A run as a fully sharded engine would make it, for when there is no recorded one: per layer a
// gather on one stream, compute that waits for it on another, a reduction on a third,
// stream-ordered frees. registers: with user buffers, which are registered anew for each layer.
std::vector<Trace> SyntheticRun(int32_t ranks, int32_t layers, bool registers);

}  // namespace shardproof::graph
