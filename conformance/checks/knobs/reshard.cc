// What becomes of a unit between its forward and its backward where reshard_after_forward is not 1.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

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
      : RankCheck(a, rank, result, sink), found_(FindWindows(a, rank)) {
    for (const Carried& carried : CarriedBy(a, rank)) {
      if (carried.gather) gathers_.push_back(carried);
    }
  }

  void Run() {
    std::map<std::pair<int32_t, int32_t>, std::vector<const Window*>> before;  // instance, unit
    for (const Window& window : found_.windows) {
      const InstanceFacts& facts = a_.Facts(size_t(window.instance));
      if (window.unit < 0 || window.reads.empty() || !Asks(facts.spec())) continue;
      if (facts.CallAt(window.call).letter != 't') continue;
      std::vector<const Window*>& earlier = before[{window.instance, window.unit}];
      if (facts.spec().reshard_after_forward == 0) {
        JudgeKept(window, earlier, facts);
      } else if (std::any_of(earlier.begin(), earlier.end(),
                             [&](const Window* one) { return GoesOn(*one, window); })) {
        parts_.push_back(&window);
      }
      earlier.push_back(&window);
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
  // A microbatch has read the one before in forward, and reads this one in backward.
  bool CutOff(const Window& before, const Window& window) const {
    if (before.call != window.call) return false;
    std::set<int32_t> forward;
    for (const int64_t read : before.reads) {
      const Event& event = At(trace_.events, read);
      if (event.phase == SPF_FWD && !event.flag) forward.insert(event.microbatch);
      if (event.phase != SPF_FWD) forward.erase(event.microbatch);
    }
    return std::any_of(window.reads.begin(), window.reads.end(), [&](int64_t read) {
      const Event& event = At(trace_.events, read);
      return event.phase != SPF_FWD && forward.contains(event.microbatch);
    });
  }
  // The one before was of the forward of a microbatch whose forward or backward goes on here.
  bool GoesOn(const Window& before, const Window& window) const {
    const int64_t backward = before.FirstInBackward(trace_);
    return before.call == window.call && (backward < 0 || backward > window.gather) &&
           Microbatch(before) == Microbatch(window);
  }

  // Keys of the unit's parameters that the gathers of a window bring.
  std::set<int32_t> KeysOf(const Window& window) const {
    std::set<int32_t> keys;
    for (const Carried& carried : gathers_) {
      if (!IsOf(carried, window)) continue;
      for (const Chunk& chunk : carried.params) keys.insert(chunk.content.param);
    }
    return keys;
  }
  bool IsOf(const Carried& carried, const Window& window) const {
    const Event& event = At(trace_.events, carried.event);
    if (event.instance != window.instance) return false;
    if (carried.event < window.gather || carried.event > window.last_gather) return false;
    const InstanceFacts& facts = a_.Facts(event.instance);
    return std::any_of(carried.params.begin(), carried.params.end(), [&](const Chunk& chunk) {
      return facts.ByKey(chunk.content.param).unit == window.unit;
    });
  }
  bool Again(const Window& before, const Window& window) const {
    const std::set<int32_t> first = KeysOf(before), now = KeysOf(window);
    return std::any_of(now.begin(), now.end(), [&](int32_t key) { return first.contains(key); });
  }

  // A unit may be gathered in pieces, its experts apart: each has a window.
  void JudgeKept(const Window& window, const std::vector<const Window*>& earlier,
                 const InstanceFacts& facts) {
    if (InForward(window) && window.FirstInBackward(trace_) >= 0) Judge(result_, {"KN-10"});
    for (const Window* before : earlier) {
      const bool cut = facts.spec().chunks > 1 ? CutOff(*before, window) : GoesOn(*before, window);
      if (!cut || !Again(*before, window)) continue;
      Judge(result_, {"KN-10"});
      Add("KN-10", window.gather,
          "unit " + facts.ModuleName(window.unit, rank_) +
              " as forward has gathered it, at event " + std::to_string(before->gather),
          "gathered again",
          "reshard_after_forward = 0, but unit " + facts.ModuleName(window.unit, rank_) +
              " is given back between its forward and its backward");
      return;
    }
  }

  // Only where backward begins with the gather: a layer that runs twice may be gathered in between
  // from the parts or from all.
  void JudgeParts() {
    for (const Carried& carried : gathers_) {
      const InstanceFacts& facts = a_.Facts(At(trace_.events, carried.event).instance);
      for (const Window* window : parts_) {
        if (InForward(*window) || !IsOf(carried, *window)) continue;
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
  std::vector<Carried> gathers_;
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
