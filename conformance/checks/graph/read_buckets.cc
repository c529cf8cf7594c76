#include "conformance/checks/graph/read_buckets.h"

#include "conformance/abi/shardproof.h"

namespace shardproof::graph {

namespace {

std::set<int32_t> KeysRead(const Trace& trace, const Event& event, const InstanceFacts& facts) {
  std::set<int32_t> keys;
  if (event.id < 0 || event.id >= facts.node_count(trace.rank)) return keys;
  const spf_uses& uses = facts.Node(event.id, trace.rank).uses[SPF_FWD];
  for (int32_t k = 0; k < uses.n; ++k) {
    if (uses.use[k].table == SPF_IN_PARAM) keys.insert(facts.Param(trace.rank, uses.use[k].id).key);
  }
  return keys;
}

}  // namespace

bool TwoBucketsAreRead(const Trace& trace, int32_t instance, const BucketKeys& keys,
                       const InstanceFacts& facts) {
  std::map<int32_t, std::set<int32_t>> read;  // buckets, by entry call
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kCompute || event.instance != instance || event.phase != SPF_FWD ||
        event.microbatch != 0)
      continue;
    const auto call = keys.find(event.call);
    if (call == keys.end()) continue;
    for (const int32_t key : KeysRead(trace, event, facts)) {
      for (const auto& [bucket, of] : call->second) {
        if (of.contains(key)) read[event.call].insert(bucket);
      }
    }
    if (read[event.call].size() > 1) return true;
  }
  return false;
}

}  // namespace shardproof::graph
