#include "conformance/checks/reduction/uses.h"

#include <algorithm>

#include "conformance/common/at.h"

namespace shardproof {

bool ContributesAlone(const std::vector<Contribution>& set, int32_t rank, int32_t call) {
  const auto now = [&](const Contribution& one) { return one.call == call; };
  const auto others = [&](const Contribution& one) { return now(one) && one.rank != rank; };
  return std::any_of(set.begin(), set.end(), now) && std::none_of(set.begin(), set.end(), others);
}

void UsesOf::Computed(const Where& where, int32_t node, int64_t event) {
  computed_[where].try_emplace(node, event);
}

UsesOf::Fate UsesOf::Missing(const Where& where, const std::set<int32_t>& want,
                             const std::set<int32_t>& seen, int64_t reduction) const {
  const auto computed = computed_.find(where);
  const bool lost = std::all_of(want.begin(), want.end(), [&](int32_t node) {
    if (seen.contains(node)) return true;
    if (computed == computed_.end()) return false;
    const auto at = computed->second.find(node);
    return at != computed->second.end() && at->second < reduction;
  });
  if (lost) return Fate::kLost;
  const auto reduced = reduced_.find(where);
  if (reduced == reduced_.end()) return Fate::kLater;
  const bool apart = std::any_of(
      reduced->second.begin(), reduced->second.end(), [&](const std::set<int32_t>& nodes) {
        return std::none_of(nodes.begin(), nodes.end(),
                            [&](int32_t node) { return seen.contains(node); });
      });
  return apart ? Fate::kApart : Fate::kLater;
}

UsesOf UsesIn(const Analysis& a, int32_t rank, const std::vector<Carried>& carried) {
  UsesOf uses;
  const Trace& trace = a.trace(rank);
  for (int64_t i = 0; i < Length(trace.events); ++i) {
    const Event& event = At(trace.events, i);
    if (event.kind != EventKind::kCompute) continue;
    const InstanceFacts& facts = a.Facts(event.instance);
    if (event.id < 0 || event.id >= facts.node_count(rank)) continue;
    const spf_uses& of = facts.Node(event.id, rank).uses[event.phase];
    for (int32_t k = 0; k < of.n; ++k) {
      if (of.use[k].table != SPF_IN_GRAD) continue;
      const int32_t key = facts.Param(rank, of.use[k].id).key;
      uses.Computed({{event.instance, event.call, key}, event.microbatch}, event.id, i);
    }
  }
  for (const Carried& one : carried) {
    if (!one.reduction) continue;
    const Event& event = At(trace.events, one.event);
    for (const Chunk& chunk : one.grads) {
      const std::vector<Contribution>& set = a.flow().sets().Get(chunk.content.tag);
      if (!ContributesAlone(set, rank, event.call)) continue;
      const UsesOf::Place place{event.instance, event.call, chunk.content.param};
      std::map<int32_t, std::set<int32_t>> nodes;
      for (const Contribution& of : set) {
        if (of.call == event.call) nodes[of.microbatch].insert(of.node);
      }
      for (const auto& [microbatch, seen] : nodes) uses.Reduced({place, microbatch}, seen);
    }
  }
  return uses;
}

}  // namespace shardproof
