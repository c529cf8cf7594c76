// Gradients of parameters stay those of one tp rank, but for those of parts of the sequence, and
// agree where all of them hold the parameter.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "conformance/checks/base/carried.h"
#include "conformance/checks/base/expected_grads.h"
#include "conformance/checks/base/published.h"
#include "conformance/checks/tensor_parallel/tensor_parallel.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

bool IsWhole(const ParamFacts& param) { return param.name == param.tensor; }

class Gradients {
 public:
  Gradients(const Analysis& a, CheckResult& result, FindingSink& sink)
      : a_(a), result_(result), sink_(sink) {
    for (size_t i = 0; i < a.n_instances(); ++i) expected_.emplace_back(a, static_cast<int>(i));
  }

  void Run() {
    for (int32_t rank = 0; rank < a_.ranks(); ++rank) {
      if (a_.has_flow()) JudgeReductions(rank);
      const Trace& trace = a_.trace(rank);
      for (size_t i = 0; i < trace.events.size(); ++i) {
        const Event& event = trace.events[i];
        if (event.kind != EventKind::kPublish || event.result != SPF_RESULT_GRAD) continue;
        const InstanceFacts& facts = a_.Facts(event.instance);
        if (!IsSplit(facts) || event.id < 0 || event.id >= facts.n_params(rank)) continue;
        const auto index = static_cast<int64_t>(i);
        if (a_.has_flow()) JudgeOrigin(rank, index, facts);
        if (IsWhole(facts.Param(rank, event.id))) JudgeEqual(rank, index, facts);
      }
    }
  }

 private:
  // Reductions of gradients, at their places.
  void JudgeReductions(int32_t rank) {
    for (const Carried& carried : CarriedBy(a_, rank)) {
      const Event& event = At(a_.trace(rank).events, carried.event);
      const InstanceFacts& facts = a_.Facts(event.instance);
      if (!carried.reduction || !IsSplit(facts)) continue;
      const ParamFacts* param = FirstDense(facts, carried);
      const int32_t mine = facts.Place(rank).tp;
      const bool over_tp =
          std::any_of(carried.group->world_ranks.begin(), carried.group->world_ranks.end(),
                      [&](int32_t other) { return facts.Place(other).tp != mine; });
      if (param == nullptr) continue;
      Judge(result_, {"TP-04"});
      if (!over_tp) continue;
      sink_.Add(a_.At("TP-04", rank, carried.event),
                "gradients of " + param->name + " stay at place " + std::to_string(mine) + " of tp",
                "summed over " + ListText(carried.group->world_ranks), Why(*param));
      told_.insert(rank);
    }
  }
  // A bucket may hold experts and others. Null: experts alone, or parts of the sequence.
  static const ParamFacts* FirstDense(const InstanceFacts& facts, const Carried& carried) {
    for (const auto& grad : carried.grads) {
      const ParamFacts& param = facts.ByKey(grad.content.param);
      if (!param.expert && !param.part) return &param;
    }
    return nullptr;
  }
  static std::string Why(const ParamFacts& param) {
    return "the gradient of " + param.name + " is summed over tp: " +
           (IsWhole(param) ? "each rank of tp has all of it already"
                           : "other ranks' shards are other elements");
  }

  // Experts hold the tokens of all ranks of ep, whose tp place need not be this rank's.
  void JudgeOrigin(int32_t rank, int64_t index, const InstanceFacts& facts) {
    const Event& event = At(a_.trace(rank).events, index);
    const ParamFacts& param = facts.Param(rank, event.id);
    const EventFlow& flow = a_.flow().At(rank, index);
    if (!flow.ran || flow.before.empty() || param.expert) return;
    if (param.part) return JudgeParts(rank, index, facts, param);
    const int32_t mine = facts.Place(rank).tp;
    for (const Chunk& chunk : flow.before[0]) {
      if (chunk.content.kind != Content::Kind::kGrad) continue;
      Judge(result_, {"TP-04"});
      for (const Contribution& one : a_.flow().sets().Get(chunk.content.tag)) {
        if (facts.Place(one.rank).tp == mine || told_.contains(rank)) continue;
        sink_.Add(a_.At("TP-04", rank, index),
                  "contributions of ranks at place " + std::to_string(mine) + " of tp only",
                  "one of rank " + std::to_string(one.rank) + ", at place " +
                      std::to_string(facts.Place(one.rank).tp),
                  Why(param));
        return;
      }
    }
  }

  // The gradient of a parameter to which each rank of tp adds that of its part of the sequence.
  void JudgeParts(int32_t rank, int64_t index, const InstanceFacts& facts,
                  const ParamFacts& param) {
    const Event& event = At(a_.trace(rank).events, index);
    const std::vector<int32_t>* tp = facts.List("tp", rank);
    if (tp == nullptr) return;
    for (const Chunk& chunk : a_.flow().At(rank, index).before[0]) {
      if (chunk.content.kind != Content::Kind::kGrad) continue;
      Judge(result_, {"TP-09"});
      const std::vector<Contribution>& seen = a_.flow().sets().Get(chunk.content.tag);
      for (const int32_t other : *tp) {
        const std::vector<int32_t>* ranks = facts.FullList(false, other);
        if (other == rank || ranks == nullptr) continue;
        const auto want = expected_[event.instance].Whole(event.call, param.key, *ranks);
        if (OfPlace(facts, facts.Place(other).tp, seen) != want)
          return TellParts(rank, index, param, other, seen);
      }
    }
  }
  void TellParts(int32_t rank, int64_t index, const ParamFacts& param, int32_t other,
                 const std::vector<Contribution>& seen) {
    const bool some = std::any_of(seen.begin(), seen.end(),
                                  [&](const Contribution& one) { return one.rank == other; });
    sink_.Add(a_.At("TP-09", rank, index),
              "each contribution of rank " + std::to_string(other) + " once",
              some ? "not these, each of them once" : "none of them",
              "the gradient of " + param.name +
                  " is that of a part of the sequence: those of all ranks of tp belong into it");
  }

  // The first values of an element, and those of a rank at another place of tp.
  void JudgeEqual(int32_t rank, int64_t index, const InstanceFacts& facts) {
    const Trace& trace = a_.trace(rank);
    const Event& event = At(trace.events, index);
    if (event.values < 0) return;
    const ParamFacts& param = facts.Param(rank, event.id);
    auto& known = first_[{event.instance, event.call, param.key}];
    for (int64_t i = 0; i < event.count; ++i) {
      const double value = At(trace.values, event.values + i);
      const auto [at, added] = known.try_emplace(event.offset + i, Seen{rank, value});
      if (added || facts.Place(at->second.rank).tp == facts.Place(rank).tp) continue;
      Judge(result_, {"TP-05"});
      if (SameValue(at->second.value, value)) continue;
      sink_.Add(a_.At("TP-05", rank, index),
                ValueText(at->second.value, event.dtype) + ", as on rank " +
                    std::to_string(at->second.rank),
                ValueText(value, event.dtype),
                "the gradient of " + param.name + "[" + std::to_string(event.offset + i) +
                    "] differs between ranks of tp, which all hold the whole parameter: they go "
                    "apart with the first step");
      return;
    }
  }

  struct Seen {
    int32_t rank = -1;
    double value = 0;
  };
  const Analysis& a_;
  CheckResult& result_;
  FindingSink& sink_;
  std::vector<ExpectedGrads> expected_;  // by instance
  std::set<int32_t> told_;               // ranks whose reductions go over tp
  std::map<std::tuple<int32_t, int32_t, int32_t>, std::map<int64_t, Seen>>
      first_;  // instance, call, key -> element
};

}  // namespace

CheckResult CheckTpGradients(const Analysis& a) {
  CheckResult result;
  if (!a.has_flow()) {
    CannotJudge(result, {"TP-04"}, a.flow_why());
    if (HasParts(a)) CannotJudge(result, {"TP-09"}, a.flow_why());
  }
  FindingSink sink(result);
  Gradients(a, result, sink).Run();
  return result;
}

}  // namespace shardproof
