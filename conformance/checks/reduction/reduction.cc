// How each gradient reduction was done: on what, when, in which dtype.
#include "conformance/checks/reduction/reduction.h"

#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/base/carried.h"
#include "conformance/checks/base/expected_grads.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof {

namespace {

int32_t DtypeOf(const Choice<KnobDtype>& dtype) {
  return dtype == KnobDtype::kBf16 ? SPF_BF16 : SPF_F32;
}

class Ops {
 public:
  Ops(const Analysis& a, CheckResult& result) : a_(a), result_(result), sink_(result) {
    for (size_t i = 0; i < a.n_instances(); ++i) expected_.emplace_back(a, static_cast<int>(i));
  }

  void JudgeRank(int32_t rank) {
    firsts_.clear();
    outers_.clear();
    const std::vector<Carried> all = CarriedBy(a_, rank);
    for (const Carried& carried : all) {
      if (carried.reduction) JudgeOne(rank, carried);
    }
    JudgeLateAdds(rank);
    JudgeCounts(rank);
    JudgeAccumulation(rank);
  }

 private:
  using Place = std::tuple<int, int32_t, int32_t>;  // instance, call, key

  const Event& EventAt(int32_t rank, int64_t index) const {
    return At(a_.trace(rank).events, index);
  }

  void JudgeOne(int32_t rank, const Carried& carried) {
    const Event& event = EventAt(rank, carried.event);
    const InstanceFacts& facts = a_.Facts(event.instance);
    Judge(result_, {"FS-21", "FS-30", "FS-36"});
    const int32_t wire = DtypeOf(facts.spec().grad_comm_dtype);
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
    const std::vector<Contribution>& set = a_.flow().sets().Get(chunk.content.tag);
    const bool own = std::all_of(set.begin(), set.end(),
                                 [&](const Contribution& one) { return one.rank == rank; });
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
      if (seen == want) continue;
      Add("FS-36", rank, carried.event,
          std::to_string(want.size()) + " contributions of microbatch " +
              std::to_string(microbatch),
          std::to_string(seen.size()),
          "the gradient of " + param.name +
              " is reduced before the last operation has added to it");
    }
    firsts_[place].emplace_back(carried.event, elements, nodes.size());
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

  // Nothing adds to a gradient between its reduction and the write that clears it.
  void JudgeLateAdds(int32_t rank) {
    std::map<int32_t, std::vector<std::pair<int64_t, int64_t>>> sent;  // by alloc: ranges
    const Trace& trace = a_.trace(rank);
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      const auto index = static_cast<int64_t>(i);
      if (event.kind == EventKind::kFree) sent.erase(event.alloc);
      if (event.kind == EventKind::kCollective && IsReduction(event.collective)) {
        if (const Range* range = SendRange(trace, event)) {
          sent[range->alloc].emplace_back(range->offset, range->offset + range->length);
        }
        continue;
      }
      for (uint32_t k = event.ranges.begin; k < event.ranges.end; ++k) {
        const Range& range = trace.ranges[k];
        if ((range.access & kWrite) == 0 || !sent.contains(range.alloc)) continue;
        const auto overlaps = [&](const std::pair<int64_t, int64_t>& one) {
          return one.first < range.offset + range.length && range.offset < one.second;
        };
        auto& ranges = sent[range.alloc];
        const bool adds = event.kind == EventKind::kCompute && (range.access & kRead) != 0;
        if (adds && std::any_of(ranges.begin(), ranges.end(), overlaps)) {
          Add("FS-36", rank, index, "no addition after the gradient was handed to its reduction",
              "another addition", "a gradient is added to after its reduction was issued");
        }
        if (!adds) std::erase_if(ranges, overlaps);
      }
    }
  }

  bool CallEnded(int32_t rank, int instance, int32_t call) const {
    const auto& events = a_.trace(rank).events;
    return std::any_of(events.begin(), events.end(), [&](const Event& event) {
      return event.kind == EventKind::kCallEnd && event.instance == instance &&
             event.call == call && event.status == SPF_OK;
    });
  }

  // Sums over microbatches happen in the main-gradient dtype.
  void JudgeAccumulation(int32_t rank) {
    const Trace& trace = a_.trace(rank);
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      const auto index = static_cast<int64_t>(i);
      const bool adds = event.kind == EventKind::kLaunch && event.id == SPF_K_AXPBY;
      if (!adds && event.kind != EventKind::kCompute) continue;
      const EventFlow& flow = a_.flow().At(rank, index);
      const auto main = static_cast<uint8_t>(
          DtypeBytes(DtypeOf(a_.Facts(event.instance).spec().main_grads_dtype)));
      for (size_t k = 0; k < flow.after.size(); ++k) {
        const std::vector<Chunk> grads = Only(flow.after[k], Content::Kind::kGrad);
        if (grads.empty() || grads[0].content.width == main ||
            !SpansMicrobatches(flow, k, grads[0]))
          continue;
        Judge(result_, {"FS-21"});
        Add("FS-21", rank, index, a_.Facts(event.instance).spec().main_grads_dtype.Text(),
            std::to_string(grads[0].content.width) + "-byte elements",
            "microbatches are accumulated in another dtype than main_grads_dtype");
        break;
      }
    }
  }

  // This operation put contributions of a second microbatch into the gradient.
  bool SpansMicrobatches(const EventFlow& flow, size_t range, const Chunk& after) const {
    const auto microbatches = [&](int32_t set) {
      std::set<int32_t> seen;
      for (const Contribution& one : a_.flow().sets().Get(set)) seen.insert(one.microbatch);
      return seen.size();
    };
    const std::vector<Chunk> before = Only(flow.before[range], Content::Kind::kGrad);
    return !before.empty() && microbatches(after.content.tag) > microbatches(before[0].content.tag);
  }

  void Add(const char* requirement, int32_t rank, int64_t event, std::string expected,
           std::string seen, std::string message) {
    sink_.Add(a_.At(requirement, rank, event), std::move(expected), std::move(seen),
              std::move(message));
  }

  const Analysis& a_;
  CheckResult& result_;
  FindingSink sink_;
  std::vector<ExpectedGrads> expected_;
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
  result.Merge(CheckZeros(a));
  return result;
}

}  // namespace shardproof
