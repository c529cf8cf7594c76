// collective_kinds.h: which kinds of collective does a trace know beyond those of the plug-in
// interface?
#pragma once
#include <cstdint>

namespace shardproof::graph {

// Event::collective of foreign traces; see event.h.
constexpr uint8_t kReduce = 101, kBarrier = 102, kGather = 103, kScatter = 104;

}  // namespace shardproof::graph
