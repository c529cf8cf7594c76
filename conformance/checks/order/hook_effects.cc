#include "conformance/checks/order/hook_effects.h"

#include <algorithm>
#include <set>

#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/base/windows.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

class Effects : RankCheck {
 public:
  Effects(const Analysis& a, int32_t rank, int instance, CheckResult& result, FindingSink& sink)
      : RankCheck(a, rank, result, sink),
        instance_(instance),
        facts_(a.Facts(size_t(instance))),
        found_(FindWindows(a, rank)) {}

  void Judge(const EntryCall& call) {
    for (const auto& [m, microbatch] : call.microbatches) {
      JudgeAvailable(microbatch, SPF_HOOK_PRE_FORWARD, SPF_HOOK_POST_FORWARD, microbatch.forward,
                     "PRE_FORWARD");
      JudgeAvailable(microbatch, SPF_HOOK_PRE_BACKWARD, SPF_HOOK_POST_BACKWARD, microbatch.backward,
                     "PRE_BACKWARD");
    }
    std::set<int32_t> in_backward;
    for (const int64_t mark : call.marks) {
      const Event& event = At(trace_.events, mark);
      if (event.id == SPF_HOOK_PRE_BACKWARD) in_backward.insert(event.module);
      if (event.id == SPF_HOOK_POST_BACKWARD) in_backward.erase(event.module);
      const bool released =
          event.id == SPF_HOOK_POST_BACKWARD ||
          (event.id == SPF_HOOK_POST_FORWARD && !in_backward.contains(event.module) &&
           facts_.spec().reshard_after_forward != 0);
      if (released) JudgeRelease(mark, event);
    }
  }

 private:
  using Events = std::vector<int64_t>;

  // Once a unit has begun to compute after its pre-hook, none of its parameters is still to come.
  void JudgeAvailable(const Microbatch& microbatch, int32_t pre, int32_t post,
                      const std::map<int32_t, Events>& computes, const char* name) {
    const auto hook = microbatch.of_unit.find(pre);
    if (hook == microbatch.of_unit.end()) return;
    const auto ends = microbatch.of_unit.find(post);
    for (const auto& [unit, begins] : hook->second) {
      const auto own = computes.find(unit);
      if (own == computes.end()) continue;
      for (const int64_t begin : begins) {
        const int64_t first = After(own->second, begin);
        const bool closed = ends != microbatch.of_unit.end() && ends->second.contains(unit);
        const int64_t end = closed ? After(ends->second.at(unit), begin) : -1;
        if (first >= 0 && end > first) JudgeLate(unit, first, end, name, hook->second);
      }
    }
  }
  // The first event behind this one, or -1.
  static int64_t After(const Events& events, int64_t begin) {
    const auto at = std::upper_bound(events.begin(), events.end(), begin);
    return at == events.end() ? -1 : *at;
  }
  // A module inside the unit that is gathered by itself, as FSDP2 does with experts, announces
  // that.
  bool IsInner(int32_t unit, int64_t first, int64_t gather,
               const std::map<int32_t, Events>& of_module) const {
    return std::any_of(of_module.begin(), of_module.end(), [&](const auto& announced) {
      const auto& [module, marks] = announced;
      const int64_t mark = After(marks, first);
      return module != unit && facts_.UnitOfModule(module, rank_) == unit && mark >= 0 &&
             mark < gather;
    });
  }
  void JudgeLate(int32_t unit, int64_t first, int64_t end, const char* name,
                 const std::map<int32_t, Events>& of_module) {
    for (const Window& window : found_.windows) {
      if (window.instance != instance_ || window.unit != unit) continue;
      if (IsInner(unit, first, window.gather, of_module)) continue;
      const int64_t read = window.NextRead(window.gather);
      if (window.gather < first || window.gather > end || read < 0 || read > end) continue;
      Add("FS-39", window.gather,
          "all parameters of unit " + facts_.ModuleName(unit, rank_) +
              " gathered before its first operation, at event " + std::to_string(first),
          std::to_string(window.bytes) + " bytes gathered afterwards",
          "unit " + facts_.ModuleName(unit, rank_) + " announced its " + name +
              ", but some of its parameters come only while it computes");
      return;
    }
  }

  // After a unit's release hook its gathered parameters are gone: nothing reads them before the
  // next gather.
  void JudgeRelease(int64_t mark, const Event& event) {
    for (const Window& window : found_.windows) {
      if (window.instance != instance_ || window.unit != event.module || !window.OpenAt(mark))
        continue;
      const int64_t read = window.NextRead(mark);
      const bool was_used = !window.reads.empty() && window.reads.front() < mark;
      if (read < 0 || !was_used || window.KeptInPipeline(facts_.spec(), trace_, mark)) continue;
      Add("FS-39", read,
          "a new gather of unit " + facts_.ModuleName(window.unit, rank_) + " after its release",
          "bytes gathered before",
          "unit " + facts_.ModuleName(window.unit, rank_) +
              " announced its release, but its old bytes are read again");
      return;
    }
  }

  const int instance_;
  const InstanceFacts& facts_;
  const RankWindows found_;
};

}  // namespace

void JudgeHookEffects(const Analysis& a, int32_t rank, int instance, const Announced& announced,
                      CheckResult& result, FindingSink& sink) {
  if (!a.has_flow()) return NeedsCase(a, result, {"FS-39"});
  const std::initializer_list<int32_t> hooks = {SPF_HOOK_PRE_FORWARD, SPF_HOOK_POST_FORWARD,
                                                SPF_HOOK_PRE_BACKWARD, SPF_HOOK_POST_BACKWARD};
  if (announced.Any(hooks)) Judge(result, {"FS-39"});
  const InstanceFacts& facts = a.Facts(size_t(instance));
  if (!ShardsParams(facts.spec()) || facts.Interleaves()) return;
  Effects effects(a, rank, instance, result, sink);
  for (const auto& [index, call] : announced.calls) effects.Judge(call);
}

}  // namespace shardproof
