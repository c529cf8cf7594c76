// expected.h: in which order must the schedule nodes of a step be issued?
//
// Generated from a small table: the microbatches, their layers, and which nodes do anything. With
// FSDP, also where gathers and releases come if nothing is gathered ahead.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/checks/base/nodes.h"

namespace shardproof::schedule {

// The passes that a combined step takes forward and backward; -1: it has no such side.
struct Sides {
  int32_t forward = -1, backward = -1;
};
// Of a rank of an interleaved pipeline (Megatron-LM,
// forward_backward_pipelining_with_interleaving). A pass is a microbatch in one chunk: microbatch *
// chunks + chunk. Forward takes `ranks` microbatches through chunk 0, then through chunk 1, and so
// on, then the next ones; backward does so from the last chunk on. Its warm-up has one pass more
// than without the overlap.
std::vector<Sides> InterleavedSteps(int32_t ranks, int32_t rank, int32_t chunks,
                                    int32_t microbatches);

struct Plan {
  bool overlap = true;  // false: one microbatch after the other
  bool train = true;
  bool early_release = false;
  std::vector<std::vector<int32_t>> layers;  // by pass, in forward order
  std::vector<Sides> steps;             // empty: a pass is a microbatch, and k stands beside k - 1
  std::function<bool(const Key&)> has;  // false: this node does nothing
};

// The step's schedule nodes in issue order. Without `steps` combined step k is the forward of
// microbatch k beside the backward of k - 1. Key::microbatch is the pass.
std::vector<Key> ExpectedOrder(const Plan& plan);

// The layers of backward that stand beside each layer of forward: pairs (i, n - 1 - i).
struct Pair {
  int32_t forward = -1, backward = -1;  // layers; -1: a tail of the other side
};
std::vector<Pair> PairsOf(const std::vector<int32_t>& forward,
                          const std::vector<int32_t>& backward);

// For the tables: bucket groups "D0" (dense, layer 0), "E0" (experts), "Ne" (before the layers),
// "Nh" (behind them).
struct ShardingPlan {
  bool shards_params = true;  // ZeRO-3; else ZeRO-2
  bool delay = false;
  std::function<bool(int32_t)> moe;                           // whether a layer has experts
  std::function<std::vector<std::string>(const Key&)> reads;  // bucket groups that it reads
};
// The order as text with "AG D0", "REL U0" in their places: a gather before the first need; a
// release when the last forward or backward work is issued, or, while a layer's backward is still
// to come, before the next gather.
std::vector<std::string> ExpectedTable(const Plan& plan, const ShardingPlan& sharding);

}  // namespace shardproof::schedule
