// Bytes that gathers and reductions move beyond what they are for (BU-04), and gradients that
// travel twice as far as sharding needs (BU-05).
#include <algorithm>
#include <map>
#include <numeric>

#include "conformance/checks/base/byte_map.h"
#include "conformance/checks/base/carried.h"
#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/base/reduces.h"
#include "conformance/checks/budgets/budgets.h"
#include "conformance/checks/budgets/padding.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof {

namespace {

using Kind = Content::Kind;

constexpr int64_t kMostAlignment = 1 << 16;  // elements of a shard

bool EqualParts(const Event& event) {
  return event.collective == SPF_ALL_GATHER || event.collective == SPF_REDUCE_SCATTER;
}

int64_t WidthOf(const Event& event) { return static_cast<int64_t>(DtypeBytes(event.dtype)); }

// LW-14 and LW-28 judge what layer-wise engines move.
bool Asks(const InstanceSpec& spec) { return spec.strategy != ShardingStrategy::kLayerWise; }

class Wire : RankCheck {
 public:
  Wire(const Analysis& a, int32_t rank, CheckResult& result, FindingSink& sink)
      : RankCheck(a, rank, result, sink), carried_(CarriedBy(a, rank)) {}

  void Run() {
    for (const Carried& carried : carried_) {
      const Event& event = At(trace_.events, carried.event);
      NoteElements(carried, event);
      if (!EqualParts(event)) continue;
      auto& shown = alignment_[{event.instance, carried.gather}];
      shown = std::gcd(shown, event.count);
    }
    for (const Carried& carried : carried_) {
      const Event& event = At(trace_.events, carried.event);
      const InstanceFacts& facts = a_.Facts(event.instance);
      if (!Asks(facts.spec()) || !IsDtype(event.dtype)) continue;
      if (carried.reduction) JudgeKind(carried, event, facts);
      if ((carried.gather || Named(facts.spec())) && !AcrossInstances(carried, facts))
        JudgeBytes(carried, event, facts);
    }
  }

 private:
  void NoteElements(const Carried& carried, const Event& event) {
    for (const Chunk& chunk : carried.gather ? carried.params : carried.grads) {
      const Content& content = chunk.content;
      moved_[{event.instance, carried.gather}].Put(content.param, content.element,
                                                   content.element + chunk.length / content.width,
                                                   content.param);
    }
  }
  // A parameter of the unit that never travels whole has lost its values, or its gradient: what is
  // sent in its place is no padding.
  bool AllTravel(const Event& event, bool gather, const InstanceFacts& facts,
                 const ParamFacts& like) {
    const ByteMap<int32_t>& moved = moved_[{event.instance, gather}];
    for (int32_t id = 0; id < facts.n_params(rank_); ++id) {
      const ParamFacts& param = facts.Param(rank_, id);
      const bool beside = param.unit == like.unit && param.expert == like.expert && !param.frozen;
      if (beside && moved.Bytes(param.key) < param.numel) return false;
    }
    return true;
  }

  // Zeros that stand for an unused parameter, or for an expert without tokens, look like padding.
  static bool Named(const InstanceSpec& spec) {
    return spec.model.unused.empty() && spec.model.moe.experts == 0;
  }

  // What these move is a shard, with the padding that it has.
  bool AcrossInstances(const Carried& carried, const InstanceFacts& facts) const {
    const auto& chunks = carried.gather ? carried.params : carried.grads;
    const bool expert = facts.ByKey(chunks.front().content.param).expert;
    const std::vector<int32_t>* outer = facts.OuterList(expert, rank_);
    return outer != nullptr && Same(*outer, *carried.group);
  }
  static bool Same(const std::vector<int32_t>& list, const GroupInfo& group) {
    return std::is_permutation(list.begin(), list.end(), group.world_ranks.begin(),
                               group.world_ranks.end());
  }

  // Each rank needs its shard of the sum only.
  void JudgeKind(const Carried& carried, const Event& event, const InstanceFacts& facts) {
    if (!ShardsParams(facts.spec())) return;
    const bool expert = facts.ByKey(carried.grads.front().content.param).expert;
    const std::vector<int32_t>* inner = facts.InnerList(expert, rank_);
    if (inner == nullptr || !Same(*inner, *carried.group)) return;
    Judge(result_, {"BU-05"});
    if (event.collective != SPF_ALL_REDUCE) return;
    Add("BU-05", carried.event, "a reduce-scatter, or a reduction to the owner", "an all-reduce",
        "every rank gets the whole sum of gradients of which it keeps a shard: twice the bytes");
  }

  void JudgeBytes(const Carried& carried, const Event& event, const InstanceFacts& facts) {
    const Range* range = carried.gather ? RecvRange(trace_, event) : SendRange(trace_, event);
    if (range == nullptr) return;
    const EventFlow& flow = a_.flow().At(rank_, carried.event);
    const size_t index = RangeIndex(trace_, event, range);
    const auto& chunks = carried.gather ? flow.after[index] : flow.before[index];
    const auto ranks = static_cast<int64_t>(carried.group->world_ranks.size());
    const int64_t sent = std::min(
        range->length, EqualParts(event) ? ranks * event.count * WidthOf(event) : range->length);
    int64_t padding = 0;
    // By parameter, as if it were an allocation: what comes, and what of it comes again.
    ByteMap<int32_t> elements, copies;
    for (const Chunk& chunk : chunks) {
      const int64_t length = std::min(chunk.length, sent - chunk.offset);
      const Content& content = chunk.content;
      if (length <= 0) continue;
      if (content.kind == Kind::kPoison || content.kind == Kind::kFill) padding += length;
      if (content.kind != Kind::kParam && content.kind != Kind::kGrad) continue;
      const int64_t begin = content.element * content.width;
      for (const auto& again : copies.Get(content.param, begin, begin + length))
        padding += again.end - again.begin;
      for (const auto& again : elements.Get(content.param, begin, begin + length))
        copies.Put(content.param, again.begin, again.end, content.param);
      elements.Put(content.param, begin, begin + length, content.param);
      width_[content.param] = content.width;
    }
    for (const auto& [key, bytes] : copies.bytes()) {
      const bool whole = elements.Bytes(key) == facts.ByKey(key).numel * width_[key];
      // One gather may bring both copies, all of each.
      const bool both = facts.spec().backward_copies && carried.gather && whole;
      if (!both || bytes < elements.Bytes(key)) padding += bytes;
    }
    JudgePadding(carried, event, facts, padding, elements);
  }

  void JudgePadding(const Carried& carried, const Event& event, const InstanceFacts& facts,
                    int64_t padding, const ByteMap<int32_t>& elements) {
    std::vector<Piece> pieces;
    int64_t bytes = 0;
    bool expert = false;
    for (const auto& [key, length] : elements.bytes()) {
      const ParamFacts& param = facts.ByKey(key);
      pieces.push_back({length, param.row * width_[key], width_[key]});
      bytes += length;
      expert = param.expert;
      if (!AllTravel(event, carried.gather, facts, param)) return;
    }
    Judge(result_, {"BU-04"});
    const std::vector<int32_t>* all = facts.FullList(expert, rank_);
    const auto members = static_cast<int64_t>(carried.group->world_ranks.size());
    const int64_t shown = alignment_[{event.instance, carried.gather}];
    const int64_t alignment = std::gcd(shown, kMostAlignment) * WidthOf(event);
    int64_t most = 0;
    for (const int64_t ranks : {members, all == nullptr ? members : int64_t{Length(*all)}})
      most = std::max(most, MostPadding(pieces, ranks, alignment));
    if (padding <= most) return;
    Add("BU-04", carried.event,
        std::to_string(bytes) + " bytes of parameters or gradients and at most " +
            std::to_string(most) + " of padding",
        std::to_string(padding) + " of padding, or of elements that come twice",
        "a collective moves bytes that nobody needs: each step pays for them on the wire");
  }

  const std::vector<Carried>& carried_;
  std::map<std::pair<int32_t, bool>, int64_t> alignment_;  // instance, gather: elements of shards
  std::map<std::pair<int32_t, bool>, ByteMap<int32_t>> moved_;  // too: elements, by parameter
  std::map<int32_t, int64_t> width_;  // by parameter, of what travelled last
};

}  // namespace

CheckResult CheckWire(const Analysis& a) {
  CheckResult result;
  bool moves = false, shards = false;
  for (size_t i = 0; i < a.n_instances(); ++i) {
    const InstanceSpec& spec = a.Facts(i).spec();
    moves |= Asks(spec) && MostRanksOfAParameter(spec) > 1;
    shards |= ShardsParams(spec) && MostRanksOfAParameter(spec) > 1;
  }
  if (!a.has_flow()) {
    if (moves) CannotJudge(result, {"BU-04"}, a.flow_why());
    if (shards) CannotJudge(result, {"BU-05"}, a.flow_why());
    return result;
  }
  FindingSink sink(result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) Wire(a, rank, result, sink).Run();
  return result;
}

}  // namespace shardproof
