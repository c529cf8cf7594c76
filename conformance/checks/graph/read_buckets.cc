#include "conformance/checks/graph/read_buckets.h"

#include <algorithm>

#include "conformance/abi/shardproof.h"
#include "conformance/common/at.h"

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

// The last bucket that brings one of these; -1: none does.
int32_t LastOf(const std::vector<GatheredBucket>& buckets, const std::set<int32_t>& keys) {
  int32_t last = -1;
  for (int32_t i = 0; i < Length(buckets); ++i) {
    const std::set<int32_t>& of = At(buckets, i).keys;
    if (std::any_of(keys.begin(), keys.end(), [&](int32_t key) { return of.contains(key); }))
      last = i;
  }
  return last;
}

}  // namespace

bool SomeBucketIsBehind(const Trace& trace, int32_t instance, const GatheredBuckets& gathered,
                        const InstanceFacts& facts) {
  const auto unknown = [](const GatheredBucket& bucket) { return bucket.keys.empty(); };
  std::set<int32_t> begun;  // entry calls whose first compute is known
  for (const auto& [call, buckets] : gathered) {
    if (std::any_of(buckets.begin(), buckets.end(), unknown)) return true;
  }
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kCompute || event.instance != instance || event.phase != SPF_FWD ||
        event.microbatch != 0)
      continue;
    const auto call = gathered.find(event.call);
    if (call == gathered.end() || begun.contains(event.call)) continue;
    const int32_t last = LastOf(call->second, KeysRead(trace, event, facts));
    if (last < 0) continue;
    begun.insert(event.call);
    if (last + 1 < Length(call->second)) return true;
  }
  return false;
}

}  // namespace shardproof::graph
