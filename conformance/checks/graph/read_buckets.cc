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

// Places of the buckets that bring one of these.
std::set<int32_t> PlacesOf(const std::vector<GatheredBucket>& buckets,
                           const std::set<int32_t>& keys) {
  std::set<int32_t> places;
  for (int32_t i = 0; i < Length(buckets); ++i) {
    const std::set<int32_t>& of = At(buckets, i).keys;
    if (std::any_of(keys.begin(), keys.end(), [&](int32_t key) { return of.contains(key); }))
      places.insert(i);
  }
  return places;
}

}  // namespace

bool SomethingRunsBeside(const Trace& trace, int32_t instance, const GatheredBuckets& gathered,
                         const InstanceFacts& facts) {
  const auto unknown = [](const GatheredBucket& bucket) { return bucket.keys.empty(); };
  for (const auto& [call, buckets] : gathered) {
    if (std::any_of(buckets.begin(), buckets.end(), unknown)) return true;
  }
  std::map<int32_t, std::set<int32_t>> first;  // by entry call: what the first compute needs
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kCompute || event.instance != instance || event.phase != SPF_FWD ||
        event.microbatch != 0)
      continue;
    const auto call = gathered.find(event.call);
    if (call == gathered.end()) continue;
    const std::set<int32_t> places = PlacesOf(call->second, KeysRead(trace, event, facts));
    if (places.empty()) continue;
    const auto [at, begins] = first.emplace(event.call, places);
    if (begins && *places.rbegin() + 1 < Length(call->second)) return true;
    if (!std::includes(at->second.begin(), at->second.end(), places.begin(), places.end()))
      return true;
  }
  return false;
}

}  // namespace shardproof::graph
