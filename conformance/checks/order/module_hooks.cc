#include "conformance/checks/order/module_hooks.h"

#include <algorithm>
#include <set>

#include "conformance/checks/base/rank_check.h"

namespace shardproof {

namespace {

using Events = std::vector<int64_t>;

class ModuleHooks : RankCheck {
 public:
  ModuleHooks(const Analysis& a, int32_t rank, int instance, CheckResult& result, FindingSink& sink)
      : RankCheck(a, rank, result, sink), facts_(a.Facts(size_t(instance))) {}

  void JudgeAll(const Announced& announced) {
    const std::set<int32_t> modules = ModulesOf(announced);
    for (const auto& [index, call] : announced.calls) {
      for (const auto& [m, microbatch] : call.microbatches) {
        if (!call.ok || m < 0) continue;
        for (const int32_t module : modules) JudgeModule(module, m, microbatch);
      }
    }
  }

 private:
  std::set<int32_t> ModulesOf(const Announced& announced) const {
    std::set<int32_t> modules;
    for (const auto& [index, call] : announced.calls) {
      for (const auto& [m, microbatch] : call.microbatches) {
        const auto hook = microbatch.of_unit.find(SPF_HOOK_PRE_FORWARD);
        if (hook == microbatch.of_unit.end() || m < 0) continue;
        for (const auto& [module, marks] : hook->second) {
          if (facts_.UnitOfModule(module, rank_) != module) modules.insert(module);
        }
      }
    }
    return modules;
  }

  void JudgeModule(int32_t module, int32_t m, const Microbatch& microbatch) {
    const Events& entered = Of(microbatch.entered, module);
    const auto hook = microbatch.of_unit.find(SPF_HOOK_PRE_FORWARD);
    const Events& marks = hook == microbatch.of_unit.end() ? none_ : Of(hook->second, module);
    const std::string name =
        "module " + facts_.ModuleName(module, rank_) + " in microbatch " + std::to_string(m);
    if (!entered.empty() && (marks.empty() || marks.front() > entered.front())) {
      Add("FS-39", entered.front(), "PRE_FORWARD of the module before it, as elsewhere in this run",
          marks.empty() ? "no PRE_FORWARD" : "PRE_FORWARD later",
          name + " computes before its pre-forward hook");
    }
    for (size_t i = 1; i < marks.size(); ++i) {
      const auto next = std::upper_bound(entered.begin(), entered.end(), marks[i - 1]);
      if (next != entered.end() && *next < marks[i]) continue;
      Add("FS-39", marks[i], "PRE_FORWARD once before each forward of the module",
          "announced again, and nothing of it was computed since",
          name + " announces its pre-forward hook twice for one forward");
    }
  }

  const Events& Of(const std::map<int32_t, Events>& events, int32_t module) const {
    const auto at = events.find(module);
    return at == events.end() ? none_ : at->second;
  }

  const InstanceFacts& facts_;
  const Events none_;
};

}  // namespace

void JudgeModuleHooks(const Analysis& a, int32_t rank, int instance, const Announced& announced,
                      CheckResult& result, FindingSink& sink) {
  ModuleHooks(a, rank, instance, result, sink).JudgeAll(announced);
}

}  // namespace shardproof
