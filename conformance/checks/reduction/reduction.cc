// How each gradient reduction was done: on what, when, in which dtype.
#include "conformance/checks/reduction/reduction.h"

#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/base/carried.h"
#include "conformance/checks/base/expected_grads.h"
#include "conformance/checks/reduction/uses.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof {

namespace {

class Ops {
 public:
  Ops(const Analysis& a, CheckResult& result)
      : a_(a), result_(result), sink_(result), uncleared_(UnclearedSums(a)) {
    for (size_t i = 0; i < a.n_instances(); ++i) expected_.emplace_back(a, static_cast<int>(i));
  }

  void JudgeRank(int32_t rank) {
    firsts_.clear();
    outers_.clear();
    const std::vector<Carried>& all = CarriedBy(a_, rank);
    uses_ = UsesIn(a_, rank, all);
    for (const Carried& carried : all) {
      if (carried.reduction) JudgeOne(rank, carried);
    }
    JudgeCounts(rank);
  }

 private:
  using Place = UsesOf::Place;

  const Event& EventAt(int32_t rank, int64_t index) const {
    return At(a_.trace(rank).events, index);
  }

  void JudgeOne(int32_t rank, const Carried& carried) {
    const Event& event = EventAt(rank, carried.event);
    const InstanceFacts& facts = a_.Facts(event.instance);
    Judge(result_, {"FS-21", "FS-30", "FS-36"});
    const int32_t wire = SpfDtype(facts.spec().grad_comm_dtype);
    if (event.dtype != wire) {
      Add("FS-21", rank, carried.event, facts.spec().grad_comm_dtype.Text(),
          event.dtype == SPF_BF16 ? "bf16" : "another dtype",
          "gradients travel in another dtype than the case asks for");
    }
    std::set<bool> kinds;
    for (const Chunk& chunk : carried.grads) kinds.insert(facts.ByKey(chunk.content.param).expert);
    if (kinds.size() > 1) {
      Add("FS-30", rank, carried.event, "expert or dense parameters", "both",
          "one reduction holds gradients of expert and of dense parameters, which are reduced over "
          "different groups");
    }
    for (const Chunk& chunk : carried.grads) JudgeChunk(rank, carried, event, facts, chunk);
  }

  void JudgeChunk(int32_t rank, const Carried& carried, const Event& event,
                  const InstanceFacts& facts, const Chunk& chunk) {
    const ParamFacts& param = facts.ByKey(chunk.content.param);
    std::vector<Contribution> room;
    const std::vector<Contribution>& set =
        OfThisPart(facts, param, rank, a_.flow().sets().Get(chunk.content.tag), room);
    const bool own = ContributesAlone(set, rank, event.call);
    const std::vector<int32_t>* outer = facts.OuterList(param.expert, rank);
    const bool is_outer = outer != nullptr && *outer == carried.group->world_ranks;
    const int64_t elements = chunk.length / std::max<int64_t>(1, chunk.content.width);
    const Place place{event.instance, event.call, param.key};
    if (is_outer) {
      NoteOuter(rank, carried.event, place, param, chunk.content.element,
                chunk.content.element + elements);
      JudgeOuterInput(rank, carried, event, facts, param, set);
    }
    const std::vector<int32_t>* inner = facts.InnerList(param.expert, rank);
    const bool second_level = is_outer && inner != nullptr && inner->size() > 1;
    if (!own || second_level) return;
    std::map<int32_t, std::set<int32_t>> nodes;  // of this call, by microbatch
    for (const Contribution& one : set) {
      if (one.call == event.call) nodes[one.microbatch].insert(one.node);
    }
    for (const auto& [microbatch, seen] : nodes) {
      const std::set<int32_t>& want =
          expected_[event.instance].Nodes(event.call, rank, microbatch, param.key);
      if (seen != want) JudgeUses(rank, carried.event, param, {place, microbatch}, want, seen);
    }
    firsts_[place].emplace_back(carried.event, elements, nodes.size());
  }

  // A reduction of other uses of a parameter than all: what it lacks was lost, or goes in another
  // reduction, or is still to be added.
  void JudgeUses(int32_t rank, int64_t index, const ParamFacts& param, const UsesOf::Where& where,
                 const std::set<int32_t>& want, const std::set<int32_t>& seen) {
    const std::string expected = std::to_string(want.size()) + " contributions of microbatch " +
                                 std::to_string(where.second);
    const auto missing = uses_.Missing(where, want, seen, index);
    if (missing == UsesOf::Fate::kLater) {
      Add("FS-36", rank, index, expected, std::to_string(seen.size()),
          "the gradient of " + param.name +
              " is reduced before the last operation has added to it");
      return;
    }
    Judge(result_, {"FS-12"});
    Add("FS-12", rank, index, expected + ", summed", std::to_string(seen.size()) + " of them",
        missing == UsesOf::Fate::kLost
            ? "the gradient of " + param.name +
                  " goes into its reduction without all of its uses, although they were computed "
                  "before: let each use add to what the others left"
            : param.name +
                  " is used several times, and its gradient is reduced after each use: add up all "
                  "uses, and reduce the sum once");
  }

  void JudgeOuterInput(int32_t rank, const Carried& carried, const Event& event,
                       const InstanceFacts& facts, const ParamFacts& param,
                       const std::vector<Contribution>& set) {
    Judge(result_, {"FS-42"});
    const std::vector<int32_t>* inner = facts.InnerList(param.expert, rank);
    if (inner == nullptr) return;
    const auto want = expected_[event.instance].Whole(event.call, param.key, *inner).size();
    const auto seen = static_cast<size_t>(std::count_if(
        set.begin(), set.end(), [&](const Contribution& one) { return one.call == event.call; }));
    if (seen >= want) return;
    Add("FS-42", rank, carried.event, std::to_string(want) + " contributions of the inner group",
        std::to_string(seen),
        "the outer reduction of " + param.name +
            " starts before the inner reductions of all microbatches are in");
  }

  // How often each element took part in a first and in an outer reduction.
  void JudgeCounts(int32_t rank) {
    for (const auto& [place, reductions] : firsts_) {
      const auto& [instance, call, key] = place;
      const InstanceFacts& facts = a_.Facts(size_t(instance));
      const ParamFacts& param = facts.ByKey(key);
      const std::vector<int32_t>* inner = facts.InnerList(param.expert, rank);
      Judge(result_, {"FS-37"});
      const bool each = ShardsGrads(facts.spec()) && inner != nullptr && inner->size() > 1;
      int32_t microbatches = 0;
      for (int32_t m = 0; m < facts.spec().microbatches; ++m) {
        microbatches += !At(expected_, instance).Nodes(call, rank, m, key).empty();
      }
      int64_t elements = 0;
      size_t widest = 0;
      for (const auto& [event, count, of] : reductions) {
        elements += count;
        widest = std::max(widest, of);
      }
      if (a_.CallName(rank, instance, call).starts_with("eval_step")) {
        Add("FS-37", rank, std::get<0>(reductions.back()), "no reduction",
            std::to_string(elements) + " elements reduced",
            "a gradient of " + param.name + " is reduced in an evaluation");
        continue;
      }
      const int64_t want = (each ? microbatches : 1) * param.numel;
      if (elements == want && (!each || widest <= 1)) continue;
      // What was added to memory that nobody wrote is no gradient to count; FS-05 says that.
      if (uncleared_.contains({instance, call, key})) continue;
      if (elements < want && !CallEnded(rank, instance, call)) continue;
      Add("FS-37", rank, std::get<0>(reductions.back()),
          each ? "one reduction per microbatch" : "one reduction per step",
          std::to_string(elements) + " elements reduced, expected " + std::to_string(want),
          param.name + " is reduced " +
              (each ? "other than once per microbatch, as sharded gradients need"
                    : "other than once per step"));
    }
  }

  // An element that is reduced over the outer group is not reduced over it again in the step.
  void NoteOuter(int32_t rank, int64_t event, const Place& place, const ParamFacts& param,
                 int64_t begin, int64_t end) {
    Judge(result_, {"FS-19"});
    for (const auto& [from, to] : outers_[place]) {
      if (to <= begin || end <= from) continue;
      Add("FS-19", rank, event, "each element once",
          param.name + "[" + std::to_string(std::max(begin, from)) + "] again",
          param.name + " is reduced over the outer group more than once in a step");
      return;
    }
    outers_[place].emplace_back(begin, end);
  }

  bool CallEnded(int32_t rank, int instance, int32_t call) const {
    const auto& events = a_.trace(rank).events;
    return std::any_of(events.begin(), events.end(), [&](const Event& event) {
      return event.kind == EventKind::kCallEnd && event.instance == instance &&
             event.call == call && event.status == SPF_OK;
    });
  }

  void Add(const char* requirement, int32_t rank, int64_t event, std::string expected,
           std::string seen, std::string message) {
    sink_.Add(a_.At(requirement, rank, event), std::move(expected), std::move(seen),
              std::move(message));
  }

  const Analysis& a_;
  CheckResult& result_;
  FindingSink sink_;
  const std::set<UnclearedSum> uncleared_;
  std::vector<ExpectedGrads> expected_;
  UsesOf uses_;  // of one rank
  std::map<Place, std::vector<std::tuple<int64_t, int64_t, size_t>>>
      firsts_;  // event, elements, microbatches
  std::map<Place, std::vector<std::pair<int64_t, int64_t>>> outers_;  // elements reduced so far
};

}  // namespace

CheckResult CheckReductionOps(const Analysis& a) {
  CheckResult result;
  Ops ops(a, result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) ops.JudgeRank(rank);
  return result;
}

CheckResult CheckReduction(const Analysis& a) {
  CheckResult result;
  if (!a.legal()) return result;
  if (!a.has_flow()) {
    NeedsCase(a, result,
              {"FS-05", "FS-10", "FS-11", "FS-12", "FS-19", "FS-21", "FS-22", "FS-27", "FS-29",
               "FS-30", "FS-36", "FS-37", "FS-42"});
    return result;
  }
  result.Merge(CheckGradientContents(a));
  result.Merge(CheckReductionOps(a));
  result.Merge(CheckSums(a));
  result.Merge(CheckZeros(a));
  result.Merge(CheckClears(a));
  return result;
}

}  // namespace shardproof
