// Announced hooks: their order by the hook table. Hooks of the step: step_hooks.cc; of modules that
// are no units: module_hooks.cc; effects: hook_effects.cc.
#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/base/windows.h"
#include "conformance/checks/order/announced.h"
#include "conformance/checks/order/hook_effects.h"
#include "conformance/checks/order/module_hooks.h"
#include "conformance/checks/order/order.h"
#include "conformance/checks/order/step_hooks.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

// What a unit is doing.
enum class Phase { kRest, kForward, kBackward };

class Marks : RankCheck {
 public:
  Marks(const Analysis& a, int32_t rank, int instance, const Announced& announced,
        CheckResult& result, FindingSink& sink)
      : RankCheck(a, rank, result, sink),
        sink_(sink),
        instance_(instance),
        facts_(a.Facts(size_t(instance))),
        announced_(announced) {}

  bool any() const { return !announced_.hooks.empty(); }

  void JudgeAll() {
    if (!any()) return;
    for (const auto& [index, call] : announced_.calls) {
      if (!call.ok) continue;
      for (const auto& [m, microbatch] : call.microbatches) {
        if (call.train && m >= 0) JudgeBackward(m, microbatch);
        if (m >= 0) JudgeForward(m, microbatch);
      }
      JudgePhases(call);
    }
    JudgeStepHooks(a_, rank_, instance_, announced_, result_, sink_);
    JudgeModuleHooks(a_, rank_, instance_, announced_, result_, sink_);
    JudgeHookEffects(a_, rank_, instance_, announced_, result_, sink_);
  }

 private:
  const Event& EventAt(int64_t index) const { return At(a_.trace(rank_).events, index); }

  bool Announces(int32_t hook) const { return announced_.hooks.contains(hook); }

  const std::vector<int64_t>& HookOf(const Microbatch& microbatch, int32_t hook,
                                     int32_t unit) const {
    const auto at = microbatch.of_unit.find(hook);
    if (at == microbatch.of_unit.end() || !at->second.contains(unit)) return none_;
    return at->second.at(unit);
  }
  const std::vector<int64_t>& RootHook(const Microbatch& microbatch, int32_t hook) const {
    const auto at = microbatch.hooks.find(hook);
    return at == microbatch.hooks.end() ? none_ : at->second;
  }

  void JudgeForward(int32_t m, const Microbatch& microbatch) {
    if (!microbatch.any_forward.empty()) {
      JudgeOnce(m, microbatch, SPF_HOOK_FORWARD, "FORWARD", microbatch.any_forward.front(), true);
    }
    for (const auto& [unit, computes] : microbatch.forward) {
      JudgePostForward(microbatch, unit, computes);
      if (!Announces(SPF_HOOK_PRE_FORWARD)) continue;
      const std::vector<int64_t>& pre = HookOf(microbatch, SPF_HOOK_PRE_FORWARD, unit);
      if (pre.empty() || pre.front() > computes.front()) {
        Add("FS-39", computes.front(),
            "PRE_FORWARD of unit " + facts_.ModuleName(unit, rank_) + " before it",
            pre.empty() ? "no PRE_FORWARD" : "PRE_FORWARD later",
            "unit " + facts_.ModuleName(unit, rank_) + " computes in microbatch " +
                std::to_string(m) + " before its pre-forward hook");
      }
    }
  }

  // What is computed again in backward has no hook of its own.
  void JudgePostForward(const Microbatch& microbatch, int32_t unit,
                        const std::vector<int64_t>& computes) {
    const std::vector<int64_t>& post = HookOf(microbatch, SPF_HOOK_POST_FORWARD, unit);
    const auto last = std::find_if(computes.rbegin(), computes.rend(),
                                   [&](int64_t index) { return !EventAt(index).flag; });
    if (post.empty() || last == computes.rend() || post.back() > *last) return;
    Add("FS-06", *last, "POST_FORWARD of unit " + facts_.ModuleName(unit, rank_) + " after it",
        "earlier",
        "unit " + facts_.ModuleName(unit, rank_) +
            " computes in forward after its post-forward hook");
  }

  void JudgeBackward(int32_t m, const Microbatch& microbatch) {
    if (microbatch.any_backward.empty()) return;
    if (announced_.Any({SPF_HOOK_FORWARD, SPF_HOOK_REGISTER_BACKWARD, SPF_HOOK_ROOT_PRE_BACKWARD,
                        SPF_HOOK_PRE_BACKWARD, SPF_HOOK_POST_BACKWARD, SPF_HOOK_ACCUMULATE,
                        SPF_HOOK_ROOT_POST_BACKWARD}))
      Judge(result_, {"FS-04"});
    const int64_t first = microbatch.any_backward.front(), last = microbatch.any_backward.back();
    JudgeOnce(m, microbatch, SPF_HOOK_ROOT_PRE_BACKWARD, "ROOT_PRE_BACKWARD", first, true);
    JudgeOnce(m, microbatch, SPF_HOOK_ROOT_POST_BACKWARD, "ROOT_POST_BACKWARD", last, false);
    for (const auto& [unit, computes] : microbatch.backward) {
      const std::string name = facts_.ModuleName(unit, rank_);
      const std::vector<int64_t>& pre = HookOf(microbatch, SPF_HOOK_PRE_BACKWARD, unit);
      const std::vector<int64_t>& post = HookOf(microbatch, SPF_HOOK_POST_BACKWARD, unit);
      if (Announces(SPF_HOOK_PRE_BACKWARD) && (pre.empty() || pre.front() > computes.front())) {
        Add("FS-04", computes.front(), "PRE_BACKWARD of unit " + name + " first",
            pre.empty() ? "none" : "later",
            "unit " + name + " computes in backward before its pre-backward hook");
      }
      if (Announces(SPF_HOOK_POST_BACKWARD) && (post.empty() || post.back() < computes.back())) {
        Add("FS-04", computes.back(), "POST_BACKWARD of unit " + name + " after its last operation",
            post.empty() ? "none" : "earlier",
            "unit " + name + " computes after its post-backward hook");
      }
    }
    for (const auto& [unit, computes] : microbatch.backward) {
      const bool announced = !HookOf(microbatch, SPF_HOOK_ACCUMULATE, unit).empty();
      if (announced || microbatch.with_gradients.contains(unit)) {
        JudgeUnitOnce(microbatch, SPF_HOOK_ACCUMULATE, "ACCUMULATE", unit, computes.back(), false);
      }
      if (Announces(SPF_HOOK_POST_BACKWARD)) {
        JudgeUnitOnce(microbatch, SPF_HOOK_REGISTER_BACKWARD, "REGISTER_BACKWARD", unit,
                      computes.front(), true);
      }
    }
  }

  // A unit's hook: once per backward, before (or after) all of the unit's backward operations.
  void JudgeUnitOnce(const Microbatch& microbatch, int32_t hook, const char* name, int32_t unit,
                     int64_t bound, bool before) {
    if (!Announces(hook)) return;
    const std::vector<int64_t>& events = HookOf(microbatch, hook, unit);
    const bool ordered = events.size() == 1 && (before ? events[0] < bound : events[0] > bound);
    if (ordered) return;
    Add("FS-04", events.empty() ? bound : events.back(),
        std::string(name) + " once, " + (before ? "before" : "after") +
            " the unit's backward operations",
        events.size() == 1 ? "in the wrong place" : std::to_string(events.size()) + " times",
        std::string(name) + " of unit " + facts_.ModuleName(unit, rank_) +
            " must be announced once per backward");
  }

  // A root hook: exactly once per pass, before (or after) everything of it.
  void JudgeOnce(int32_t m, const Microbatch& microbatch, int32_t hook, const char* name,
                 int64_t bound, bool before) {
    if (!Announces(hook)) return;
    const std::vector<int64_t>& events = RootHook(microbatch, hook);
    if (events.size() != 1) {
      Add("FS-04", events.empty() ? bound : events.back(), std::string(name) + " once",
          std::to_string(events.size()) + " times",
          std::string(name) + " of microbatch " + std::to_string(m) +
              " must be announced exactly once");
      return;
    }
    const bool ordered = before ? events[0] < bound : events[0] > bound;
    if (ordered) return;
    Add("FS-04", events[0], std::string(name) + (before ? " first" : " last"), "in between",
        std::string(name) + " of microbatch " + std::to_string(m) +
            (before ? " comes after" : " comes before") + " an operation of its pass");
  }

  // Rest, forward, rest, backward, rest: judged for units whose both hooks of a phase are
  // announced; by microbatch where two of them interleave.
  void JudgePhases(const EntryCall& call) {
    std::map<std::pair<int32_t, int32_t>, Phase> phases;  // (unit, microbatch)
    const bool forward = Announces(SPF_HOOK_PRE_FORWARD) && Announces(SPF_HOOK_POST_FORWARD);
    const bool backward = Announces(SPF_HOOK_PRE_BACKWARD) && Announces(SPF_HOOK_POST_BACKWARD);
    if (forward || backward) Judge(result_, {"FS-06"});
    for (const int64_t index : call.marks) {
      const Event& event = EventAt(index);
      const bool is_unit = facts_.UnitOfModule(event.module, rank_) == event.module;
      if (!is_unit) continue;
      Follow(index, forward, backward,
             phases[{event.module, facts_.Interleaves() ? event.microbatch : -1}]);
    }
    for (const auto& [place, phase] : phases) {
      if (phase == Phase::kRest) continue;
      const int32_t unit = place.first;
      Add("FS-06", call.end, "unit " + facts_.ModuleName(unit, rank_) + " idle",
          phase == Phase::kForward ? "in forward" : "in backward",
          "unit " + facts_.ModuleName(unit, rank_) + " is not idle when the entry call ends");
    }
  }

  // forward, backward: both hooks of that phase are announced.
  void Follow(int64_t index, bool forward, bool backward, Phase& phase) {
    const int32_t hook = EventAt(index).id;
    const bool in_backward = phase == Phase::kBackward;  // a forward that is run again there
    if (hook == SPF_HOOK_PRE_FORWARD && forward && !in_backward)
      Move(index, phase, Phase::kRest, Phase::kForward);
    if (hook == SPF_HOOK_POST_FORWARD && forward && !in_backward)
      Move(index, phase, Phase::kForward, Phase::kRest);
    if (hook == SPF_HOOK_PRE_BACKWARD && backward)
      Move(index, phase, Phase::kRest, Phase::kBackward);
    if (hook == SPF_HOOK_POST_BACKWARD && backward)
      Move(index, phase, Phase::kBackward, Phase::kRest);
  }

  void Move(int64_t index, Phase& phase, Phase from, Phase to) {
    static constexpr const char* kNames[] = {"idle", "in forward", "in backward"};
    if (phase != from) {
      Add("FS-06", index, std::string("the unit ") + kNames[static_cast<size_t>(from)],
          kNames[static_cast<size_t>(phase)],
          "this hook is not allowed in the unit's current phase");
    }
    phase = to;
  }

  FindingSink& sink_;
  const int instance_;
  const InstanceFacts& facts_;
  const std::vector<int64_t> none_;
  const Announced& announced_;
};

}  // namespace

CheckResult CheckMarks(const Analysis& a) {
  CheckResult result;
  const std::initializer_list<const char*> all = {"FS-04", "FS-06", "FS-38", "FS-39"};
  if (!a.has_case()) {
    NeedsCase(a, result, all);
    return result;
  }
  for (const Trace& trace : a.traces()) {
    const std::string who = "the trace of rank " + std::to_string(trace.rank);
    if (!trace.provides.marks) {
      NotAsked(result, all, who + " does not provide marks, which are optional");
      return result;
    }
    if (trace.provides.work && trace.provides.calls) continue;
    CannotJudge(result, all, who + " has marks, but does not provide work and calls");
    return result;
  }
  FindingSink sink(result);
  bool any = false;
  for (size_t i = 0; i < a.n_instances(); ++i) {
    const auto instance = static_cast<int>(i);
    std::vector<Announced> by_rank(static_cast<size_t>(a.ranks()));
    for (int32_t rank = 0; rank < a.ranks(); ++rank) {
      if (!a.Facts(i).InGrid(rank)) continue;
      Announced& announced = At(by_rank, rank) = AnnouncedBy(a, rank, instance);
      Marks marks(a, rank, instance, announced, result, sink);
      marks.JudgeAll();
      any |= marks.any();
    }
    JudgeSameStepHooks(a, instance, by_rank, sink);
  }
  // Of those that were judged the row goes (KeepOneRowEach).
  NotAsked(result, all,
           any ? "the engine announces none of the hooks that it speaks of"
               : "the engine announces no hooks: call mark() to have their order judged");
  return result;
}

}  // namespace shardproof
