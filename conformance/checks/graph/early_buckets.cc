#include "conformance/checks/graph/early_buckets.h"

#include <algorithm>
#include <utility>

#include "conformance/abi/shardproof.h"

namespace shardproof::graph {

namespace {

// What is known of a block: the layer whose backward wrote it last, and whether another's followed.
struct Filled {
  bool written = false, early = false;
  std::string layer;
};

}  // namespace

bool SomeBucketIsEarly(const Trace& trace, int32_t instance,
                       const std::map<int32_t, std::set<int32_t>>& blocks,
                       const std::function<std::string(int32_t node)>& layer_of) {
  std::map<int32_t, std::map<int32_t, Filled>> calls;
  for (const auto& [call, of] : blocks) {
    for (const int32_t block : of) calls[call][block] = {};
  }
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kCompute || event.instance != instance || event.phase == SPF_FWD)
      continue;
    const auto call = calls.find(event.call);
    if (call == calls.end()) continue;
    const std::string layer = layer_of(event.id);
    for (auto& [block, filled] : call->second)
      filled.early |= filled.written && filled.layer != layer;
    for (uint32_t r = event.ranges.begin; r < event.ranges.end; ++r) {
      const Range& range = trace.ranges[r];
      const auto found = call->second.find(range.alloc);
      if ((range.access & kWrite) != 0 && found != call->second.end())
        found->second = {.written = true, .early = false, .layer = layer};
    }
  }
  return std::any_of(calls.begin(), calls.end(), [](const auto& call) {
    return std::any_of(call.second.begin(), call.second.end(),
                       [](const auto& one) { return one.second.early || !one.second.written; });
  });
}

}  // namespace shardproof::graph
