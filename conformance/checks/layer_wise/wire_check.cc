// What gathers and reductions hold: whose parameters, over which ranks, in which sizes, dtype and
// kind.
#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/layer_wise/layer_wise.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof::layer_wise {

namespace {

constexpr int64_t kMostPiece = 256;  // bytes: a piece is padded to a multiple of no more

const char* KindName(int32_t kind) {
  switch (kind) {
    case SPF_ALL_GATHER:
      return "all_gather";
    case SPF_ALL_GATHER_V:
      return "all_gather_v";
    case SPF_BROADCAST:
      return "broadcast";
    case SPF_REDUCE_SCATTER:
      return "reduce_scatter";
    case SPF_ALL_REDUCE:
      return "all_reduce";
    default:
      return "another kind";
  }
}

class Wire : RankCheck {
 public:
  Wire(const Facts& facts, int32_t rank, CheckResult& result) : RankCheck(facts, rank, result) {}

  void Run() {
    JudgeEmpty();
    for (const Gather& gather : facts_.At(rank_).gathers) {
      if (gather.group->world_ranks.size() < 2) {
        report_.Add("LW-16", rank_, gather.event, "no collective in a group of one rank",
                    KindName(Kind(gather.event)),
                    "parameters are gathered where there is nobody to gather from");
        continue;
      }
      JudgeGroup(gather);
      JudgeMixture(gather);
      JudgeSizes(gather);
      JudgeKind(gather);
      if (facts_.Aligned(gather.instance)) JudgeEdges(gather);
    }
    for (const Reduction& reduction : facts_.At(rank_).reductions) {
      if (facts_.LayerWise(reduction.instance)) JudgeReduction(reduction);
    }
    JudgeBuckets();
  }

 private:
  const Event& EventAt(int64_t index) const { return At(a_.trace(rank_).events, index); }
  int32_t Kind(int64_t event) const { return EventAt(event).collective; }
  const ParamFacts& P(int32_t instance, int32_t key) const {
    return facts_.Of(instance).ByKey(key);
  }

  // Collectives that move nothing.
  void JudgeEmpty() {
    report_.Judged({"LW-16"});
    const Trace& trace = a_.trace(rank_);
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      const bool reduces =
          event.collective == SPF_REDUCE_SCATTER || event.collective == SPF_ALL_REDUCE;
      if (event.kind != EventKind::kCollective || !facts_.LayerWise(event.instance) ||
          event.request >= 0)
        continue;
      if ((!Brings(event.collective) && !reduces) || !event.ranges.empty()) continue;
      report_.Add("LW-16", rank_, static_cast<int64_t>(i),
                  "no collective for a bucket without elements",
                  std::string(KindName(event.collective)) + " of nothing",
                  "an empty bucket takes a collective");
    }
    for (const Reduction& reduction : facts_.At(rank_).reductions) {
      if (!facts_.LayerWise(reduction.instance) || reduction.group->world_ranks.size() > 1)
        continue;
      report_.Add("LW-16", rank_, reduction.event, "no collective in a group of one rank",
                  KindName(Kind(reduction.event)),
                  "gradients are reduced where there is nobody to reduce with");
    }
  }

  void JudgeGroup(const Gather& gather) {
    report_.Judged({"LW-05"});
    for (const Share& share : gather.shares) {
      if (!OverItsGroup(gather.instance, gather.event, *gather.group, share.key, "gathered"))
        return;
    }
  }
  bool OverItsGroup(int32_t instance, int64_t event, const GroupInfo& group, int32_t key,
                    const std::string& what) {
    const std::vector<int32_t>* list = facts_.List(instance, rank_, key);
    if (P(instance, key).frozen || list == nullptr || *list == group.world_ranks) return true;
    report_.Add(
        "LW-05", rank_, event,
        std::string(P(instance, key).expert ? "expt_dp" : "dp_cp") + ", ranks " + ListText(*list),
        "ranks " + ListText(group.world_ranks),
        P(instance, key).name + " is " + what +
            " over other ranks than those among which it is dealt");
    return false;
  }

  void JudgeMixture(const Gather& gather) {
    report_.Judged({"LW-07"});
    std::set<std::pair<bool, int32_t>> kinds;
    for (const Share& share : gather.shares) {
      const ParamFacts& param = P(gather.instance, share.key);
      kinds.insert({param.expert, param.dtype});
    }
    if (kinds.size() < 2) return;
    const bool both = kinds.begin()->first != kinds.rbegin()->first;
    report_.Add("LW-07", rank_, gather.event, "parameters of one kind and one dtype",
                both ? "expert and dense ones" : "several dtypes",
                "one gather brings parameters of different buckets");
  }

  // Each member's part has the size of what it owns here, in the parameters' dtype.
  void JudgeSizes(const Gather& gather) {
    report_.Judged({"LW-14"});
    const Event& event = EventAt(gather.event);
    const int32_t dtype = P(gather.instance, gather.shares[0].key).dtype;
    if (event.dtype != dtype) {
      report_.Add("LW-14", rank_, gather.event,
                  std::to_string(DtypeBytes(dtype)) + "-byte elements, as the parameters",
                  std::to_string(DtypeBytes(event.dtype)) + "-byte elements",
                  "parameters travel in another dtype than theirs");
      return;
    }
    if (facts_.Aligned(gather.instance)) return;  // padding is the layout's
    const auto& ranks = gather.group->world_ranks;
    int64_t largest = 0;
    std::vector<int64_t> owned(ranks.size(), 0);
    for (const Share& share : gather.shares) {
      const auto m =
          static_cast<size_t>(std::find(ranks.begin(), ranks.end(), share.from) - ranks.begin());
      owned[m] += share.elements;
      largest = std::max(largest, owned[m]);
    }
    const int64_t shown =
        AlignmentShown(facts_.At(rank_), gather.instance,
                       kMostPiece / std::max<int64_t>(1, static_cast<int64_t>(DtypeBytes(dtype))));
    for (size_t m = 0; m < ranks.size(); ++m) {
      const int64_t want = event.collective == SPF_ALL_GATHER ? largest : owned[m];
      const int64_t most = (want + shown - 1) / shown * shown;
      if (want <= gather.slots[m] && gather.slots[m] <= most) continue;
      report_.Add("LW-14", rank_, gather.event,
                  std::to_string(want) + " elements of rank " + std::to_string(ranks[m]) +
                      ", or up to " + std::to_string(most) + " with the padding of all parts",
                  std::to_string(gather.slots[m]),
                  "a member's part of a gather has another size than what it owns there");
      return;
    }
  }

  void JudgeKind(const Gather& gather) {
    report_.Judged({"LW-21"});
    const LayerWiseSpec& spec = facts_.spec(gather.instance).layer_wise;
    const bool aligned = facts_.Aligned(gather.instance);
    const int32_t want = aligned || spec.transport == LayerWiseTransport::kPadded ? SPF_ALL_GATHER
                         : spec.transport == LayerWiseTransport::kBroadcast       ? SPF_BROADCAST
                                                                            : SPF_ALL_GATHER_V;
    const int32_t seen = Kind(gather.event);
    if (seen != want) {
      report_.Add("LW-21", rank_, gather.event,
                  std::string(KindName(want)) + ", as layer_wise_" +
                      (aligned ? "layout" : "transport") + " asks",
                  KindName(seen), "parameters travel in another way than the case asks for");
    } else if (aligned && !gather.in_place) {
      report_.Add("LW-21", rank_, gather.event, "in place in the model weights",
                  "from one buffer into another", "aligned shards are gathered where they lie");
    }
  }

  // No parameter crosses a shard's edge, and its shard is its owner's.
  void JudgeEdges(const Gather& gather) {
    report_.Judged({"LW-08"});
    std::map<int32_t, int32_t> shard;  // key -> rank
    for (const Share& share : gather.shares) {
      if (P(gather.instance, share.key).frozen) continue;
      const int32_t first = shard.try_emplace(share.key, share.from).first->second;
      if (first != share.from)
        return Crosses(gather.event, gather.instance, share.key, first, share.from);
      const int32_t owner = facts_.Owner(gather.instance, rank_, share.key);
      if (owner < 0 || owner == share.from) continue;
      report_.Add("LW-08", rank_, gather.event,
                  "in the shard of its owner, rank " + std::to_string(owner),
                  "in that of rank " + std::to_string(share.from),
                  P(gather.instance, share.key).name + " lies in another rank's shard");
      return;
    }
  }
  void Crosses(int64_t event, int32_t instance, int32_t key, int32_t one, int32_t other) {
    report_.Add(
        "LW-08", rank_, event, "each parameter in one shard",
        P(instance, key).name + " in those of ranks " + std::to_string(one) + " and " +
            std::to_string(other),
        P(instance, key).name + " crosses the edge of a shard: no rank has all of its gradient");
  }

  void JudgeReduction(const Reduction& reduction) {
    if (reduction.group->world_ranks.size() < 2) return;
    report_.Judged({"LW-05", "LW-28"});
    const Event& event = EventAt(reduction.event);
    const bool aligned = facts_.Aligned(reduction.instance);
    const int32_t want = aligned ? SPF_REDUCE_SCATTER : SPF_ALL_REDUCE;
    if (event.collective != want) {
      report_.Add("LW-28", rank_, reduction.event, KindName(want), KindName(event.collective),
                  aligned ? "gradients of aligned shards are reduced to their owners"
                          : "gradients of dealt parameters are reduced on every rank");
      return;
    }
    for (const Chunk& chunk : reduction.grads) {
      if (!OverItsGroup(reduction.instance, reduction.event, *reduction.group, chunk.content.param,
                        "reduced"))
        return;
    }
    const int64_t shard = event.count * static_cast<int64_t>(DtypeBytes(event.dtype));
    if (!aligned || shard == 0) return;
    report_.Judged({"LW-08"});
    for (const Chunk& chunk : reduction.grads) {
      const auto first = static_cast<size_t>(chunk.offset / shard);
      const auto last = static_cast<size_t>((chunk.offset + chunk.length - 1) / shard);
      const auto& ranks = reduction.group->world_ranks;
      if (first == last || last >= ranks.size()) continue;
      return Crosses(reduction.event, reduction.instance, chunk.content.param, ranks[first],
                     ranks[last]);
    }
  }

  // A parameter is reduced with the same others in every step.
  void JudgeBuckets() {
    std::map<std::pair<int32_t, int32_t>, std::set<int32_t>> bucket_of;  // (instance, key) -> keys
    for (const Reduction& reduction : facts_.At(rank_).reductions) {
      if (!facts_.LayerWise(reduction.instance) || !AllNamed(reduction)) continue;
      std::set<int32_t> keys;
      for (const Chunk& chunk : reduction.grads) keys.insert(chunk.content.param);
      for (const int32_t key : keys) {
        const std::set<int32_t>& first =
            bucket_of.try_emplace({reduction.instance, key}, keys).first->second;
        if (first == keys) continue;
        report_.Add(
            "LW-07", rank_, reduction.event,
            "the bucket of " + std::to_string(first.size()) + " parameters, as before",
            "one of " + std::to_string(keys.size()),
            P(reduction.instance, key).name + " is in another bucket than in an earlier step");
        return;
      }
    }
  }
  // All that it sends are gradients. A parameter that got none in this step leaves zeros, which
  // have no name, and so does padding.
  bool AllNamed(const Reduction& reduction) const {
    const Event& event = EventAt(reduction.event);
    const Range* send = SendRange(a_.trace(rank_), event);
    int64_t named = 0;
    for (const Chunk& chunk : reduction.grads) named += chunk.length;
    return send != nullptr && named == send->length;
  }
};

}  // namespace

CheckResult CheckWire(const Facts& facts) {
  CheckResult result;
  for (int32_t rank = 0; rank < facts.a().ranks(); ++rank) Wire(facts, rank, result).Run();
  return result;
}

}  // namespace shardproof::layer_wise
