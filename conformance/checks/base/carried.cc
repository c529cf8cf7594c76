#include "conformance/checks/base/carried.h"

#include "conformance/common/at.h"

namespace shardproof {

bool IsReduction(uint8_t collective) {
  constexpr uint8_t kForeignReduce = 101;
  return collective == SPF_REDUCE_SCATTER || collective == SPF_ALL_REDUCE ||
         collective == kForeignReduce;
}

bool IsOuter(const Analysis& a, int32_t rank, const Carried& carried) {
  const InstanceFacts& facts = a.Facts(At(a.trace(rank).events, carried.event).instance);
  const std::vector<Chunk>& chunks = carried.gather ? carried.params : carried.grads;
  const bool expert = facts.ByKey(chunks.front().content.param).expert;
  const std::vector<int32_t>* outer = facts.OuterList(expert, rank);
  return outer != nullptr && *outer == carried.group->world_ranks;
}

std::vector<Carried> CarriedBy(const Analysis& a, int32_t rank) {
  std::vector<Carried> all;
  const Trace& trace = a.trace(rank);
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind != EventKind::kCollective || event.group < 0) continue;
    const GroupInfo& group = At(trace.groups, event.group);
    const EventFlow& flow = a.flow().At(rank, static_cast<int64_t>(i));
    if (group.world_ranks.size() < 2 || !flow.ran) continue;
    Carried carried;
    carried.event = static_cast<int64_t>(i);
    carried.comm = group.comm;
    carried.group = &group;
    if (IsReduction(event.collective)) {
      if (const Range* send = SendRange(trace, event)) {
        carried.grads = Only(flow.before[RangeIndex(trace, event, send)], Content::Kind::kGrad);
      }
      carried.reduction = !carried.grads.empty();
    } else if (const Range* recv = RecvRange(trace, event)) {
      const std::string call = a.CallName(rank, event.instance, event.call);
      const bool trains = call.starts_with("train_step") || call.starts_with("eval_step");
      if (trains)
        carried.params = Only(flow.after[RangeIndex(trace, event, recv)], Content::Kind::kParam);
      carried.gather = !carried.params.empty();
    }
    if (carried.gather || carried.reduction) all.push_back(std::move(carried));
  }
  return all;
}

}  // namespace shardproof
