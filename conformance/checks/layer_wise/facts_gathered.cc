#include <algorithm>

#include "conformance/checks/base/carried.h"
#include "conformance/checks/layer_wise/facts.h"
#include "conformance/common/dtype.h"

namespace shardproof::layer_wise {

using Kind = Content::Kind;

namespace {

// Elements that each member contributes.
std::vector<int64_t> SlotsOf(const Trace& trace, const Event& event, size_t members) {
  std::vector<int64_t> slots(members, event.count);
  for (size_t m = 0; m < members; ++m) {
    const bool counted = m < event.recv_counts.size();
    if (event.collective == SPF_ALL_GATHER_V)
      slots[m] = counted ? trace.numbers[event.recv_counts.begin + m] : 0;
    if (event.collective == SPF_BROADCAST && static_cast<int32_t>(m) != event.peer) slots[m] = 0;
  }
  return slots;
}

bool Within(const Range& inner, const Range& outer) {
  return inner.alloc == outer.alloc && inner.offset >= outer.offset &&
         inner.offset + inner.length <= outer.offset + outer.length;
}

// Which parameters are in what arrived, slot by slot.
std::vector<Share> SharesOf(const Gather& gather, const std::vector<Chunk>& arrived,
                            int64_t width) {
  std::vector<Share> shares;
  int64_t begin = 0;
  for (size_t m = 0; m < gather.slots.size(); ++m) {
    const int64_t end = begin + gather.slots[m] * width;
    for (const Chunk& chunk : arrived) {
      const int64_t from = std::max(begin, chunk.offset),
                    to = std::min(end, chunk.offset + chunk.length);
      if (from >= to) continue;
      const Content content = chunk.content.At(from - chunk.offset);
      shares.push_back({content.param, content.element,
                        (to - from) / std::max<int64_t>(1, content.width),
                        gather.group->world_ranks[m], content.tag, gather.to.offset + from,
                        gather.to.offset + to});
    }
    begin = end;
  }
  return shares;
}

}  // namespace

void Facts::AddGather(const Trace& trace, int64_t index, RankFacts& of) {
  const Event& event = trace.events[size_t(index)];
  const Range *send = SendRange(trace, event), *recv = RecvRange(trace, event);
  // The root of a broadcast may receive nothing: it has its values where it sends them from.
  const bool stays = recv == nullptr && event.collective == SPF_BROADCAST;
  const Range* at = stays ? send : recv;
  if (at == nullptr) return;
  Gather gather;
  gather.event = index;
  gather.instance = event.instance;
  gather.call = event.call;
  gather.epoch = EpochOf(of, event, index);
  gather.group = &trace.groups[size_t(event.group)];
  gather.to = *at;
  gather.stays = stays;
  gather.in_place = stays || (send != nullptr && send != at && Within(*send, *at));
  gather.slots = SlotsOf(trace, event, gather.group->world_ranks.size());
  const EventFlow& flow = a_.flow().At(trace.rank, index);
  const std::vector<Chunk>& there =
      (stays ? flow.before : flow.after)[RangeIndex(trace, event, at)];
  gather.shares =
      SharesOf(gather, Only(there, Kind::kParam), static_cast<int64_t>(DtypeBytes(event.dtype)));
  if (gather.shares.empty()) return;
  gather.expert = Of(event.instance).ByKey(gather.shares[0].key).expert;
  of.gathers.push_back(std::move(gather));
}

void Facts::AddUpdates(const Trace& trace, int64_t index, RankFacts& of) {
  const Event& event = trace.events[size_t(index)];
  const EventFlow& flow = a_.flow().At(trace.rank, index);
  if (!flow.ran || (event.id != SPF_K_ADAMW && event.id != SPF_K_AXPBY && event.id != SPF_K_CUSTOM))
    return;
  const bool of_gradient =
      std::any_of(flow.before.begin(), flow.before.end(),
                  [](const auto& chunks) { return !Only(chunks, Kind::kGrad).empty(); });
  for (size_t k = 0; k < flow.after.size(); ++k) {
    const Range& range = trace.ranges[event.ranges.begin + k];
    if (range.access != (kRead | kWrite) || Only(flow.before[k], Kind::kParam).empty()) continue;
    for (const Chunk& chunk : Only(flow.after[k], Kind::kParam)) {
      of.updates.push_back({index, event.instance, event.call, chunk.content.param,
                            chunk.length / std::max<int64_t>(1, chunk.content.width), event.id,
                            of_gradient});
    }
  }
}

int64_t AlignmentShown(const RankFacts& of, int32_t instance, int64_t most) {
  auto bits = static_cast<uint64_t>(most);
  for (const Gather& gather : of.gathers) {
    if (gather.instance != instance || gather.group->world_ranks.size() < 2) continue;
    for (const int64_t slot : gather.slots) bits |= static_cast<uint64_t>(slot);
  }
  return static_cast<int64_t>(bits & -bits);
}

}  // namespace shardproof::layer_wise
