#include "conformance/checks/order/step_hooks.h"

#include <algorithm>
#include <map>

#include "conformance/checks/base/rank_check.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

class StepHooks : RankCheck {
 public:
  StepHooks(const Analysis& a, int32_t rank, int instance, const Announced& announced,
            CheckResult& result, FindingSink& sink)
      : RankCheck(a, rank, result, sink),
        instance_(instance),
        facts_(a.Facts(size_t(instance))),
        announced_(announced) {}

  void JudgeAll() {
    for (const auto& [index, call] : announced_.calls) {
      if (!call.ok) continue;
      call.train ? JudgeStep(call, Skipped(index)) : JudgeOutsideStep(call);
    }
  }

 private:
  // The threshold left the step out: no rank publishes a parameter. One that owns none never does.
  bool Skipped(int32_t call) const {
    if (facts_.spec().skip_norm <= 0) return false;
    const auto publishes = [&](const Event& event) {
      return event.kind == EventKind::kPublish && event.result == SPF_RESULT_PARAM &&
             event.instance == instance_ && event.call == call;
    };
    return std::none_of(a_.traces().begin(), a_.traces().end(), [&](const Trace& trace) {
      return std::any_of(trace.events.begin(), trace.events.end(), publishes);
    });
  }

  void JudgeStep(const EntryCall& call, bool skipped) {
    if (announced_.Any({SPF_HOOK_FINISH_GRAD_SYNC, SPF_HOOK_INSTALL_WEIGHTS,
                        SPF_HOOK_START_PARAM_SYNC, SPF_HOOK_ZERO_GRAD, SPF_HOOK_OPTIMIZER_STEP}))
      Judge(result_, {"FS-38"});
    const auto once = [&](int32_t hook, const char* name) -> int64_t {
      if (!announced_.hooks.contains(hook)) return -1;
      const auto at = call.step_hooks.find(hook);
      const size_t n = at == call.step_hooks.end() ? 0 : at->second.size();
      if (n == 1) return at->second[0];
      const bool updates = hook == SPF_HOOK_OPTIMIZER_STEP || hook == SPF_HOOK_INSTALL_WEIGHTS;
      if (n == 0 && skipped && updates) return -1;  // there is no update to announce
      Add("FS-38", n == 0 ? call.end : at->second.back(), std::string(name) + " once per step",
          std::to_string(n) + " times",
          std::string(name) + " must be announced exactly once per step");
      return n == 0 ? -1 : at->second.back();
    };
    const int64_t finish = once(SPF_HOOK_FINISH_GRAD_SYNC, "FINISH_GRAD_SYNC");
    const int64_t optimizer = once(SPF_HOOK_OPTIMIZER_STEP, "OPTIMIZER_STEP");
    const int64_t install = once(SPF_HOOK_INSTALL_WEIGHTS, "INSTALL_WEIGHTS");
    const int64_t zero = once(SPF_HOOK_ZERO_GRAD, "ZERO_GRAD");
    const int64_t start = once(SPF_HOOK_START_PARAM_SYNC, "START_PARAM_SYNC");
    for (const auto& [m, microbatch] : call.microbatches) {
      if (!microbatch.any_forward.empty())
        InOrder(start, microbatch.any_forward.front(), "START_PARAM_SYNC first");
    }
    JudgeZero(call, zero, optimizer);
    JudgeHandOver(call, finish);
    InOrder(finish, optimizer, "FINISH_GRAD_SYNC before OPTIMIZER_STEP");
    InOrder(optimizer, install, "OPTIMIZER_STEP before INSTALL_WEIGHTS");
    for (const auto& [m, microbatch] : call.microbatches) {
      if (!microbatch.any_backward.empty()) {
        InOrder(microbatch.any_backward.back(), finish, "every backward before FINISH_GRAD_SYNC");
      }
    }
  }

  // From the first backward on accumulators hold what the optimizer is to see.
  void JudgeZero(const EntryCall& call, int64_t zero, int64_t optimizer) {
    int64_t first = call.end;
    for (const auto& [m, microbatch] : call.microbatches) {
      if (!microbatch.any_backward.empty())
        first = std::min(first, microbatch.any_backward.front());
    }
    if (zero < first || (optimizer >= 0 && zero > optimizer)) return;
    Add("FS-38", zero, "ZERO_GRAD before the first backward, or after the optimizer", "in between",
        "accumulators are cleared while they hold gradients of this step");
  }

  // Once all reductions are drained, nothing more is handed to them.
  void JudgeHandOver(const EntryCall& call, int64_t finish) {
    for (const auto& [m, microbatch] : call.microbatches) {
      const auto root = microbatch.hooks.find(SPF_HOOK_ROOT_POST_BACKWARD);
      if (root != microbatch.hooks.end())
        InOrder(root->second.back(), finish, "ROOT_POST_BACKWARD before FINISH_GRAD_SYNC");
      const auto units = microbatch.of_unit.find(SPF_HOOK_ACCUMULATE);
      if (units == microbatch.of_unit.end()) continue;
      for (const auto& [unit, events] : units->second)
        InOrder(events.back(), finish, "ACCUMULATE before FINISH_GRAD_SYNC");
    }
  }

  // An entry call that is no train step changes no gradient and steps no optimizer; an evaluation
  // may gather ahead, create and load may install weights.
  void JudgeOutsideStep(const EntryCall& call) {
    for (const auto& [hook, events] : call.step_hooks) {
      const bool may = hook == SPF_HOOK_START_PARAM_SYNC || hook == SPF_HOOK_INSTALL_WEIGHTS;
      if (may && events.size() == 1) continue;
      Add("FS-38", events.back(), may ? "at most once" : "in train steps alone",
          may ? std::to_string(events.size()) + " times" : "in another entry call",
          "a hook of the step is announced " +
              std::string(may ? "more than once in an entry call" : "where there is no step"));
    }
    const auto start = call.step_hooks.find(SPF_HOOK_START_PARAM_SYNC);
    if (start == call.step_hooks.end()) return;
    for (const auto& [m, microbatch] : call.microbatches) {
      if (!microbatch.any_forward.empty())
        InOrder(start->second.back(), microbatch.any_forward.front(), "START_PARAM_SYNC first");
    }
  }

  void InOrder(int64_t first, int64_t second, const char* rule) {
    if (first < 0 || second < 0 || first < second) return;
    Add("FS-38", second, rule, "the other way round", "hooks out of order: " + std::string(rule));
  }

  const int instance_;
  const InstanceFacts& facts_;
  const Announced& announced_;
};

}  // namespace

void JudgeStepHooks(const Analysis& a, int32_t rank, int instance, const Announced& announced,
                    CheckResult& result, FindingSink& sink) {
  StepHooks(a, rank, instance, announced, result, sink).JudgeAll();
}

void JudgeSameStepHooks(const Analysis& a, int instance, const std::vector<Announced>& by_rank,
                        FindingSink& sink) {
  std::map<std::pair<int32_t, int32_t>, std::pair<int32_t, int64_t>> first;  // call, hook: where
  for (int32_t rank = 0; rank < Length(by_rank); ++rank) {
    for (const auto& [index, call] : At(by_rank, rank).calls) {
      for (const auto& [hook, events] : call.step_hooks) {
        if (call.ok && !call.train) first.try_emplace({index, hook}, rank, events.front());
      }
    }
  }
  for (const auto& [place, where] : first) {
    const auto& [index, hook] = place;
    for (int32_t rank = 0; rank < Length(by_rank); ++rank) {
      const Announced& announced = At(by_rank, rank);
      const auto call = announced.calls.find(index);
      if (!announced.hooks.contains(hook) || call == announced.calls.end() || !call->second.ok ||
          call->second.step_hooks.contains(hook))
        continue;
      sink.Add(a.AtCall("FS-38", rank, instance, index, rank),
               "announced, as on rank " + std::to_string(where.first), "not announced",
               a.Describe(where.first, where.second) + " is missing on rank " +
                   std::to_string(rank) + ", which announces this hook in other entry calls");
    }
  }
}

}  // namespace shardproof
