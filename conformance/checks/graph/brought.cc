#include "conformance/checks/graph/brought.h"

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/base/carried.h"
#include "conformance/common/at.h"

namespace shardproof {

std::vector<BroughtByEvent> WhatIsBrought(const Analysis& a) {
  std::vector<BroughtByEvent> brought;
  if (!a.has_flow()) return brought;
  for (int32_t rank = 0; rank < Length(a.traces()); ++rank) {
    BroughtByEvent& of = brought.emplace_back();
    for (const Carried& carried : CarriedBy(a, rank)) {
      const std::vector<Chunk>& chunks = carried.gather ? carried.params : carried.grads;
      const Event& event = At(a.trace(rank).events, carried.event);
      if (chunks.empty() || event.instance >= a.n_instances()) continue;
      const InstanceFacts& facts = a.Facts(static_cast<size_t>(event.instance));
      const int32_t unit = facts.ByKey(chunks.front().content.param).unit;
      Brought& one = of[carried.event];
      one = {carried.gather, carried.reduction, unit,
             event.module >= 0 && facts.UnitOfModule(event.module, rank) == unit};
      for (const Chunk& chunk : carried.params) one.keys.insert(chunk.content.param);
    }
  }
  return brought;
}

}  // namespace shardproof
