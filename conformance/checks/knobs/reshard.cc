// What becomes of a unit between its forward and its backward where reshard_after_forward is not 1.
#include <algorithm>
#include <map>

#include "conformance/checks/base/carried.h"
#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/base/windows.h"
#include "conformance/checks/knobs/knobs.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

bool Asks(const InstanceSpec& spec) {
  return ShardsParams(spec) && spec.reshard_after_forward != 1 && !spec.overlap_moe;
}

class Reshard : RankCheck {
 public:
  Reshard(const Analysis& a, int32_t rank, CheckResult& result, FindingSink& sink)
      : RankCheck(a, rank, result, sink), found_(FindWindows(a, rank)) {}

  void Run() {
    std::map<std::pair<int32_t, int32_t>, const Window*> before;  // by instance and unit
    for (const Window& window : found_.windows) {
      const InstanceFacts& facts = a_.Facts(size_t(window.instance));
      if (window.unit < 0 || window.reads.empty() || !Asks(facts.spec())) continue;
      if (facts.CallAt(window.call).letter != 't') continue;
      const Window*& last = before[{window.instance, window.unit}];
      if (facts.spec().reshard_after_forward == 0) {
        JudgeKept(window, last, facts);
      } else if (last != nullptr && GoesOn(*last, window)) {
        parts_.push_back(&window);
      }
      last = &window;
    }
    JudgeParts();
  }

 private:
  int32_t Microbatch(const Window& window) const {
    return At(trace_.events, window.reads.front()).microbatch;
  }
  bool InForward(const Window& window) const {
    return window.FirstInBackward(trace_) != window.reads.front();
  }
  // The one before was of the forward of a microbatch whose forward or backward goes on here.
  bool GoesOn(const Window& before, const Window& window) const {
    const int64_t backward = before.FirstInBackward(trace_);
    return before.call == window.call && (backward < 0 || backward > window.gather) &&
           Microbatch(before) == Microbatch(window);
  }

  void JudgeKept(const Window& window, const Window* before, const InstanceFacts& facts) {
    if (InForward(window) && window.FirstInBackward(trace_) >= 0) Judge(result_, {"KN-10"});
    if (before == nullptr || !GoesOn(*before, window)) return;
    Judge(result_, {"KN-10"});
    Add("KN-10", window.gather,
        "unit " + facts.ModuleName(window.unit) + " as forward has gathered it, at event " +
            std::to_string(before->gather),
        "released at event " + std::to_string(before->release) + ", and gathered again",
        "reshard_after_forward = 0, but unit " + facts.ModuleName(window.unit) +
            " is given back between its forward and its backward");
  }

  // Only where backward begins with the gather: a layer that runs twice may be gathered in between
  // from the parts or from all.
  void JudgeParts() {
    for (const Carried& carried : CarriedBy(a_, rank_)) {
      if (!carried.gather) continue;
      const Event& event = At(trace_.events, carried.event);
      const InstanceFacts& facts = a_.Facts(event.instance);
      for (const Window* window : parts_) {
        if (window->instance != event.instance || InForward(*window)) continue;
        if (carried.event < window->gather || carried.event > window->last_gather) continue;
        const auto dense = [&](const Chunk& chunk) {
          const ParamFacts& param = facts.ByKey(chunk.content.param);
          return param.unit == window->unit && !param.expert;
        };
        const auto chunk = std::find_if(carried.params.begin(), carried.params.end(), dense);
        if (chunk != carried.params.end()) JudgePart(carried, facts, *chunk);
      }
    }
  }
  void JudgePart(const Carried& carried, const InstanceFacts& facts, const Chunk& chunk) {
    const std::vector<int32_t>* part = facts.PartList(false, rank_);
    if (part == nullptr) return;
    Judge(result_, {"KN-11"});
    if (carried.group->world_ranks == *part) return;
    const std::string n = std::to_string(facts.spec().reshard_after_forward);
    Add("KN-11", carried.event, "a gather over the ranks " + ListText(*part),
        "one over " + ListText(carried.group->world_ranks),
        "reshard_after_forward = " + n + ", but for backward " +
            facts.ByKey(chunk.content.param).name + " is gathered over other ranks than the " + n +
            " that share it out after forward");
  }

  const RankWindows found_;
  std::vector<const Window*> parts_;  // gathered again after a forward that has ended
};

}  // namespace

CheckResult CheckReshard(const Analysis& a) {
  CheckResult result;
  bool asked = false;
  for (size_t i = 0; i < a.n_instances(); ++i) {
    const InstanceSpec& spec = a.Facts(i).spec();
    if (!Asks(spec)) continue;
    asked = true;
    const char* id = spec.reshard_after_forward == 0 ? "KN-10" : "KN-11";
    if (!a.has_flow()) CannotJudge(result, {id}, a.flow_why());
  }
  if (!asked || !a.has_flow()) return result;
  FindingSink sink(result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) Reshard(a, rank, result, sink).Run();
  return result;
}

}  // namespace shardproof
