#include "conformance/checks/tensor_parallel/crossings.h"

#include <algorithm>
#include <vector>

#include "conformance/checks/base/carried.h"
#include "conformance/checks/base/event_ranges.h"
#include "conformance/checks/tensor_parallel/tensor_parallel.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

const std::vector<int32_t>& RanksOf(const Trace& trace, const Event& event) {
  return At(trace.groups, event.group).world_ranks;
}

bool OverList(const Analysis& a, int32_t rank, const char* family, const Event& event) {
  const std::vector<int32_t>* list = a.Facts(event.instance).List(family, rank);
  std::vector<int32_t> ranks = RanksOf(a.trace(rank), event);
  std::sort(ranks.begin(), ranks.end());
  return list != nullptr && ranks == *list;
}

bool Crosses(const Analysis& a, int32_t rank, const Event& event) {
  if (event.group < 0 || event.instance >= a.n_instances()) return false;
  const InstanceFacts& facts = a.Facts(event.instance);
  if (!IsSplit(facts) || !facts.InGrid(rank)) return false;
  const int32_t mine = facts.Place(rank).tp;
  const std::vector<int32_t>& ranks = RanksOf(a.trace(rank), event);
  return std::any_of(ranks.begin(), ranks.end(), [&](int32_t other) {
    return facts.InGrid(other) && facts.Place(other).tp != mine;
  });
}

// What the bytes of a collective are, where that was followed.
struct Moved {
  const std::vector<Chunk>*sent = nullptr, *received = nullptr;
};
Moved MovedBy(const Analysis& a, int32_t rank, int64_t index) {
  if (!a.has_flow()) return {};
  const EventFlow& flow = a.flow().At(rank, index);
  if (!flow.ran) return {};
  const Trace& trace = a.trace(rank);
  const Event& event = At(trace.events, index);
  const Range* send = SendRange(trace, event);
  return {send == nullptr ? nullptr : &flow.before[RangeIndex(trace, event, send)],
          &flow.after[RangeIndex(trace, event, RecvRange(trace, event))]};
}

// Weights and gradients of experts alone.
bool OfExpertsAlone(const InstanceFacts& facts, const Moved& moved) {
  bool any = false, dense = false;
  for (const std::vector<Chunk>* chunks : {moved.sent, moved.received}) {
    if (chunks == nullptr) continue;
    for (const Chunk& chunk : *chunks) {
      const Content::Kind kind = chunk.content.kind;
      if (kind != Content::Kind::kGrad && kind != Content::Kind::kParam) continue;
      any = true;
      dense = dense || !facts.ByKey(chunk.content.param).expert;
    }
  }
  return any && !dense;
}

// Weights and gradients of experts over the ranks that share them, and all-to-alls of rows, by
// label, over "ep".
bool OfExperts(const Analysis& a, int32_t rank, const Event& event, const Moved& moved) {
  if (event.purpose == SPF_FOR_EXPERT_TOKENS || event.purpose == SPF_FOR_EXPERT_COUNTS)
    return OverList(a, rank, "ep", event);
  const bool shared = OverList(a, rank, "expt_dp", event) ||
                      OverList(a, rank, "intra_expt_dp", event) ||
                      OverList(a, rank, "inter_expt_dp", event);
  return shared && OfExpertsAlone(a.Facts(event.instance), moved);
}

}  // namespace

bool BringsOtherShards(const Analysis& a, int32_t rank, int64_t index) {
  const Event& event = At(a.trace(rank).events, index);
  if (RecvRange(a.trace(rank), event) == nullptr || !Crosses(a, rank, event)) return false;
  const Moved moved = MovedBy(a, rank, index);
  if (OfExperts(a, rank, event, moved)) return false;
  return moved.sent == nullptr || !IsReduction(event.collective) ||
         !SumsParts(a, rank, event, Only(*moved.sent, Content::Kind::kGrad));
}

}  // namespace shardproof
