#include "conformance/checks/base/carried.h"

#include <algorithm>
#include <iterator>

#include "conformance/common/at.h"

namespace shardproof {
bool SumsParts(const Analysis& a, int32_t rank, const Event& event,
               const std::vector<Chunk>& grads) {
  if (event.instance >= a.n_instances()) return false;
  const InstanceFacts& facts = a.Facts(event.instance);
  std::vector<const ParamFacts*> params;
  for (const Chunk& chunk : grads) params.push_back(&facts.ByKey(chunk.content.param));
  return facts.SumsParts(At(a.trace(rank).groups, event.group).world_ranks, rank, params);
}

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

std::vector<Contribution> OfPlace(const InstanceFacts& facts, int32_t tp,
                                  const std::vector<Contribution>& set) {
  std::vector<Contribution> of;
  std::copy_if(set.begin(), set.end(), std::back_inserter(of),
               [&](const Contribution& one) { return facts.Place(one.rank).tp == tp; });
  return of;
}

const std::vector<Contribution>& OfThisPart(const InstanceFacts& facts, const ParamFacts& param,
                                            int32_t rank, const std::vector<Contribution>& set,
                                            std::vector<Contribution>& room) {
  if (!param.part) return set;
  room = OfPlace(facts, facts.Place(rank).tp, set);
  return room;
}

namespace {

CarriedOfRank CarriedIn(const Analysis& a, int32_t rank) {
  CarriedOfRank of;
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
    if (carried.reduction && SumsParts(a, rank, event, carried.grads)) {
      of.part_sums.push_back(std::move(carried));
    } else if (carried.gather || carried.reduction) {
      of.all.push_back(std::move(carried));
    }
  }
  return of;
}

}  // namespace

const CarriedOfRank& Analysis::CarriedOf(int32_t rank) const {
  auto& known = carried_[rank];
  if (known == nullptr) known = std::make_shared<const CarriedOfRank>(CarriedIn(*this, rank));
  return *known;
}

const std::vector<Carried>& CarriedBy(const Analysis& a, int32_t rank) {
  return a.CarriedOf(rank).all;
}

const std::vector<Carried>& PartSumsBy(const Analysis& a, int32_t rank) {
  return a.CarriedOf(rank).part_sums;
}

}  // namespace shardproof
