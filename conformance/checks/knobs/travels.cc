// What a gather or reduction must look like where num_optimizer_instances, outer_strategy,
// average_in_collective, bucket_size or units ask for it.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "conformance/checks/base/carried.h"
#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/knobs/knobs.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

bool HasInstances(const InstanceSpec& spec) {
  return spec.outer > 1 && spec.strategy != ShardingStrategy::kNoShard;
}

bool ShardsOuter(const InstanceSpec& spec) { return spec.outer_strategy == OuterStrategy::kOptim; }

bool CutsBuckets(const InstanceSpec& spec) {
  const bool aligned = spec.strategy == ShardingStrategy::kLayerWise &&
                       spec.layer_wise.layout == LayerWiseLayout::kAligned;
  return spec.bucket_size > 0 && !aligned;
}

// Every parameter is outside units, and gathered.
bool KeepsAll(const InstanceSpec& spec) {
  return ShardsParams(spec) && !spec.overlap_moe && (spec.units.empty() || spec.units == "none");
}

bool SameRanks(const std::vector<int32_t>* list, const GroupInfo& group) {
  return list != nullptr && std::is_permutation(list->begin(), list->end(),
                                                group.world_ranks.begin(), group.world_ranks.end());
}

bool PointToPoint(const Event& event) {
  return event.collective == SPF_SEND || event.collective == SPF_RECV;
}

// Who has published weights of which kind, in which entry call: in large worlds some ranks hold
// padding only.
class Published {
 public:
  explicit Published(const Analysis& a) {
    for (int32_t rank = 0; rank < a.ranks(); ++rank) {
      for (const Event& event : a.trace(rank).events) {
        if (event.kind != EventKind::kPublish || event.result != SPF_RESULT_PARAM) continue;
        const InstanceFacts& facts = a.Facts(event.instance);
        if (event.count > 0 && event.id >= 0 && event.id < facts.n_params(rank))
          seen_.insert({rank, event.instance, event.call, facts.Param(rank, event.id).expert});
      }
    }
  }
  bool ByOneOf(const std::vector<int32_t>& ranks, int32_t instance, int32_t call,
               bool expert) const {
    return std::any_of(ranks.begin(), ranks.end(), [&](int32_t rank) {
      return seen_.contains({rank, instance, call, expert});
    });
  }

 private:
  std::set<std::tuple<int32_t, int32_t, int32_t, bool>> seen_;  // rank, instance, call, expert
};

class Travels : RankCheck {
 public:
  Travels(const Analysis& a, int32_t rank, const Published& published, CheckResult& result,
          FindingSink& sink)
      : RankCheck(a, rank, result, sink), published_(published) {}

  void Run() {
    for (const Carried& carried : CarriedBy(a_, rank_)) {
      const Event& event = At(trace_.events, carried.event);
      const InstanceFacts& facts = a_.Facts(event.instance);
      const std::vector<Chunk>& chunks = carried.gather ? carried.params : carried.grads;
      const bool expert = facts.ByKey(chunks.front().content.param).expert;
      if (HasInstances(facts.spec()) && !PointToPoint(event)) {
        JudgeRanks(carried, facts, expert);
        NoteCrossing(carried, event, facts, expert);
      }
      if (carried.reduction && facts.spec().average_in_collective) JudgeAverage(carried, event);
      if (carried.reduction && CutsBuckets(facts.spec())) JudgeBucket(carried, facts);
      if (carried.gather && KeepsAll(facts.spec())) NoteGathered(carried, event);
    }
    for (size_t i = 0; i < a_.n_instances(); ++i) {
      JudgeCrossings(static_cast<int32_t>(i));
      JudgeKept(static_cast<int32_t>(i));
    }
  }

 private:
  // An instance of the optimizer is a whole copy: only replicas of the same shard meet others.
  void JudgeRanks(const Carried& carried, const InstanceFacts& facts, bool expert) {
    const std::vector<int32_t>* inner = facts.InnerList(expert, rank_);
    const std::vector<int32_t>* outer = facts.OuterList(expert, rank_);
    if (inner == nullptr || outer == nullptr) return;
    Judge(result_, {"KN-01"});
    const bool across = carried.reduction || ShardsOuter(facts.spec());
    if (SameRanks(inner, *carried.group) || (across && SameRanks(outer, *carried.group))) return;
    if (carried.gather && SameRanks(facts.PartList(expert, rank_), *carried.group)) return;
    Add("KN-01", carried.event,
        "ranks " + ListText(*inner) + " of one instance" +
            (across ? ", or ranks " + ListText(*outer) + " across instances" : std::string()),
        "ranks " + ListText(carried.group->world_ranks),
        "num_optimizer_instances = " + std::to_string(facts.spec().outer) + ", but " +
            (carried.gather ? "parameters are gathered" : "gradients are reduced") +
            " as if the ranks were cut into instances otherwise, or not at all");
  }

  void NoteCrossing(const Carried& carried, const Event& event, const InstanceFacts& facts,
                    bool expert) {
    const std::vector<int32_t>* inner = facts.InnerList(expert, rank_);
    if (!carried.gather || inner == nullptr) return;
    const auto& ranks = carried.group->world_ranks;
    const bool crosses = std::any_of(ranks.begin(), ranks.end(), [&](int32_t other) {
      return std::find(inner->begin(), inner->end(), other) == inner->end();
    });
    if (crosses) crossings_.insert({event.instance, event.call, expert});
  }

  bool Holds(const InstanceFacts& facts, bool expert) const {
    for (int32_t id = 0; id < facts.n_params(rank_); ++id) {
      const ParamFacts& param = facts.Param(rank_, id);
      if (param.expert == expert && !param.frozen) return true;
    }
    return false;
  }

  // With a sharded outer level each rank steps a part of its inner shard: between an update and the
  // forward that follows, the others' parts come over the outer group.
  void JudgeCrossings(int32_t instance) {
    const InstanceFacts& facts = a_.Facts(size_t(instance));
    if (!HasInstances(facts.spec()) || !ShardsOuter(facts.spec()) || !facts.InGrid(rank_)) return;
    for (const bool expert : {false, true}) {
      const std::vector<int32_t>* outer = facts.OuterList(expert, rank_);
      if (outer == nullptr || outer->size() < 2 || !Holds(facts, expert)) continue;
      for (const Forward& forward : ForwardsAfterUpdates(instance))
        JudgeCrossing(facts, At(trace_.events, forward.end), forward.updated, expert);
    }
  }

  // Entry calls that read weights which a train step before has stepped.
  struct Forward {
    int64_t end = -1;      // its call_end
    int32_t updated = -1;  // the last train step before it that published parameters
  };
  std::vector<Forward> ForwardsAfterUpdates(int32_t instance) const {
    std::vector<Forward> forwards;
    int32_t updated = -1, before = -1;  // before: when the entry call began
    std::string_view inside;
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      if (event.instance != instance) continue;
      if (event.kind == EventKind::kCallBegin) {
        inside = trace_.Text(event.text);
        if (!Steps(inside)) updated = -1;  // a load, or a new engine
        before = updated;
      }
      const bool param = event.kind == EventKind::kPublish && event.result == SPF_RESULT_PARAM;
      if (param && inside == "train_step") updated = event.call;
      const bool ended = event.kind == EventKind::kCallEnd && event.status == SPF_OK;
      if (ended && before >= 0 && Steps(inside))
        forwards.push_back({static_cast<int64_t>(i), before});
    }
    return forwards;
  }
  static bool Steps(std::string_view call) { return call == "train_step" || call == "eval_step"; }

  void JudgeCrossing(const InstanceFacts& facts, const Event& call, int32_t updated, bool expert) {
    const std::vector<int32_t>& outer = *facts.OuterList(expert, rank_);
    if (!published_.ByOneOf(outer, call.instance, updated, expert)) return;
    Judge(result_, {"KN-02"});
    for (int32_t c = updated; c <= call.call; ++c) {
      if (crossings_.contains({call.instance, c, expert})) return;
    }
    Add("KN-02", &call - trace_.events.data(), "parameters gathered from ranks " + ListText(outer),
        "no gather from another instance since " + a_.CallName(rank_, call.instance, updated) +
            " stepped the weights",
        std::string("outer_strategy = optim, but the outer ranks step the same ") +
            (expert ? "expert" : "dense") + " weights instead of a part each");
  }

  void JudgeAverage(const Carried& carried, const Event& event) {
    Judge(result_, {"KN-03"});
    if (event.reduction == SPF_AVG) return;
    Add("KN-03", carried.event, "SPF_AVG", "SPF_SUM",
        "average_in_collective = 1, but the collective sums gradients and does not average them");
  }

  // A bucket is cut once it holds bucket_size elements: without its last parameter it holds less.
  void JudgeBucket(const Carried& carried, const InstanceFacts& facts) {
    std::map<int32_t, int64_t> elements;  // by key, of parameters outside units
    const bool layer_wise = facts.spec().strategy == ShardingStrategy::kLayerWise;
    for (const Chunk& chunk : carried.grads) {
      const ParamFacts& param = facts.ByKey(chunk.content.param);
      if (layer_wise || param.unit < 0)
        elements[param.key] += chunk.length / std::max<int64_t>(1, chunk.content.width);
    }
    if (elements.empty()) return;
    Judge(result_, {"KN-04"});
    int64_t all = 0, largest = 0;
    for (const auto& [key, n] : elements) {
      all += n;
      largest = std::max(largest, n);
    }
    if (all - largest < facts.spec().bucket_size) return;
    Add("KN-04", carried.event,
        "fewer than " + std::to_string(facts.spec().bucket_size) +
            " elements besides one parameter",
        std::to_string(all) + " elements of " + std::to_string(elements.size()) +
            " parameters, the largest of them " + std::to_string(largest),
        "bucket_size = " + std::to_string(facts.spec().bucket_size) +
            ", but one reduction carries more parameters than a bucket holds");
  }

  void NoteGathered(const Carried& carried, const Event& event) {
    for (const Chunk& chunk : carried.params) {
      Gathered& of = gathered_[{event.instance, event.call, chunk.content.param}];
      of.elements += chunk.length / std::max<int64_t>(1, chunk.content.width);
      of.last = carried.event;
    }
  }

  // Without units there is nothing to give back between forward and backward.
  void JudgeKept(int32_t instance) {
    const InstanceFacts& facts = a_.Facts(size_t(instance));
    if (!KeepsAll(facts.spec())) return;
    for (const auto& [place, of] : gathered_) {
      const auto& [its, call, key] = place;
      if (its != instance) continue;
      const ParamFacts& param = facts.ByKey(key);
      const bool sharded_outside = ShardsOuter(facts.spec()) && HasInstances(facts.spec());
      const int64_t allowed = facts.spec().microbatches + (sharded_outside ? 1 : 0);
      Judge(result_, {"KN-07"});
      if (of.elements <= allowed * param.numel) continue;
      Add("KN-07", of.last,
          "at most " + std::to_string(allowed) + " gathers of " + param.name + " in a step",
          std::to_string(of.elements) + " elements gathered, the parameter has " +
              std::to_string(param.numel),
          "units = none, but " + param.name +
              " is given back after forward and gathered again for backward, as a unit is");
    }
  }

  struct Gathered {
    int64_t elements = 0, last = -1;
  };
  std::set<std::tuple<int32_t, int32_t, bool>> crossings_;  // instance, call, expert
  const Published& published_;
  std::map<std::tuple<int32_t, int32_t, int32_t>, Gathered> gathered_;  // instance, call, key
};

bool Asks(const InstanceSpec& spec) {
  return HasInstances(spec) || spec.average_in_collective || CutsBuckets(spec) || KeepsAll(spec);
}

}  // namespace

CheckResult CheckTravels(const Analysis& a) {
  CheckResult result;
  bool asked = false;
  std::vector<const char*> open;
  for (size_t i = 0; i < a.n_instances(); ++i) {
    const InstanceSpec& spec = a.Facts(i).spec();
    asked |= Asks(spec);
    if (a.has_flow()) continue;
    if (HasInstances(spec)) CannotJudge(result, {"KN-01"}, a.flow_why());
    if (HasInstances(spec) && ShardsOuter(spec)) CannotJudge(result, {"KN-02"}, a.flow_why());
    if (spec.average_in_collective) CannotJudge(result, {"KN-03"}, a.flow_why());
    if (CutsBuckets(spec)) CannotJudge(result, {"KN-04"}, a.flow_why());
    if (KeepsAll(spec)) CannotJudge(result, {"KN-07"}, a.flow_why());
  }
  if (!asked || !a.has_flow()) return result;
  FindingSink sink(result);
  const Published published(a);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) Travels(a, rank, published, result, sink).Run();
  return result;
}

}  // namespace shardproof
