// hooks_test: hooks of modules that are no units, and hooks in entry calls that are no train step.
#include <gtest/gtest.h>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/order/order.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

Event Mark(int32_t hook, int32_t module, int32_t call, int32_t microbatch) {
  Event mark;
  mark.kind = EventKind::kMark;
  mark.id = hook;
  mark.module = module;
  mark.call = call;
  mark.microbatch = microbatch;
  return mark;
}

MiniRun TwoMicrobatches() {
  return RunMini(MiniCase(2, [](InstanceSpec& spec) { spec.microbatches = 2; }));
}

// The first computation of a module that is in no unit; by entry call and microbatch, of rank 0.
class Outside {
 public:
  explicit Outside(MiniRun& mini) : facts_(mini.spec->instances[0], 2), mini_(mini) {}

  std::vector<Event>& events() { return mini_.run.traces[0].events; }
  int32_t module() {
    for (const Event& event : events()) {
      if (Is(event)) return facts_.Node(event.id, 0).module;
    }
    return -1;
  }
  // PRE_FORWARD before each first computation; `times` of it before the nth.
  void Announce(size_t nth = 0, int times = 1) {
    std::vector<Event> with;
    const int32_t module = this->module();
    size_t n = 0;
    std::pair<int32_t, int32_t> last = {-1, -1};
    for (const Event& event : events()) {
      const bool first = Is(event) && facts_.Node(event.id, 0).module == module &&
                         std::pair(event.call, event.microbatch) != last;
      if (first) {
        last = {event.call, event.microbatch};
        with.insert(with.end(), n++ == nth ? static_cast<size_t>(times) : 1,
                    Mark(SPF_HOOK_PRE_FORWARD, module, event.call, event.microbatch));
      }
      with.push_back(event);
    }
    events() = std::move(with);
  }

 private:
  bool Is(const Event& event) const {
    return event.kind == EventKind::kCompute && event.phase == SPF_FWD &&
           facts_.UnitOfModule(facts_.Node(event.id, 0).module, 0) < 0;
  }
  const InstanceFacts facts_;
  MiniRun& mini_;
};

TEST(ModuleHooks, AnnouncedBeforeEachForward) {
  MiniRun mini = TwoMicrobatches();
  Outside outside(mini);
  ASSERT_GE(outside.module(), 0);
  outside.Announce();
  EXPECT_EQ(FoundIn(CheckOrder(mini.run)), "");
}

TEST(ModuleHooks, AnnouncedTwice) {
  MiniRun mini = TwoMicrobatches();
  Outside(mini).Announce(1, 2);
  EXPECT_EQ(FoundIn(CheckOrder(mini.run)), "FS-39");
}

TEST(ModuleHooks, LeftOutOnce) {
  MiniRun mini = TwoMicrobatches();
  Outside(mini).Announce(1, 0);
  EXPECT_EQ(FoundIn(CheckOrder(mini.run)), "FS-39");
}

TEST(ModuleHooks, AfterTheModuleHasComputed) {
  MiniRun mini = TwoMicrobatches();
  Outside outside(mini);
  outside.Announce();
  const auto mark =
      std::find_if(outside.events().begin(), outside.events().end(), [&](const Event& event) {
        return event.kind == EventKind::kMark && event.module == outside.module() &&
               event.id == SPF_HOOK_PRE_FORWARD;
      });
  ASSERT_NE(mark, outside.events().end());
  std::swap(*mark, *(mark + 1));
  EXPECT_EQ(FoundIn(CheckOrder(mini.run)), "FS-39");
}

// Gathers the last unit's copy for backward while its forward computes, on both ranks.
void GatherForBackwardEarly(MiniRun& mini) {
  const InstanceFacts facts(mini.spec->instances[0], 2);
  const int32_t unit = facts.units(0).back();
  for (Trace& trace : mini.run.traces) {
    std::vector<Event>& events = trace.events;
    const auto first = std::find_if(events.begin(), events.end(), [&](const Event& event) {
      return event.kind == EventKind::kCompute &&
             facts.UnitOfModule(facts.Node(event.id, 0).module, 0) == unit;
    });
    const auto begin = std::find_if(first, events.end(), [&](const Event& event) {
      return event.kind == EventKind::kMark && event.id == SPF_HOOK_PRE_BACKWARD &&
             event.module == unit;
    });
    ASSERT_NE(begin, events.end());
    const auto end = std::find_if(begin + 1, events.end(), [](const Event& event) {
      return event.kind != EventKind::kAlloc && event.collective != SPF_ALL_GATHER;
    });
    std::rotate(first + 1, begin + 1, end);
  }
}

TEST(UnitHooks, OfTwoCopiesThatForBackwardMayComeEarly) {
  MiniRun mini = RunMini(MiniCase(2, [](InstanceSpec& spec) {
    spec.backward_copies = true;
    spec.script = "t";
  }));
  GatherForBackwardEarly(mini);
  const CheckResult result = CheckOrder(mini.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("FS-39"));
}

// The hooks before the end of create, an entry call that is no train step, on the first ranks.
std::string InCreate(const std::vector<int32_t>& hooks, int32_t ranks = 2) {
  MiniRun mini = TwoMicrobatches();
  for (Trace& trace : mini.run.traces) {
    if (trace.rank >= ranks) continue;
    const auto end = std::find_if(trace.events.begin(), trace.events.end(), [](const Event& event) {
      return event.kind == EventKind::kCallEnd && event.call == 0;
    });
    std::vector<Event> marks;
    for (const int32_t hook : hooks) marks.push_back(Mark(hook, 0, 0, -1));
    trace.events.insert(end, marks.begin(), marks.end());
  }
  return FoundIn(CheckOrder(mini.run));
}

TEST(HooksOutsideAStep, InstallOnceIsRight) { EXPECT_EQ(InCreate({SPF_HOOK_INSTALL_WEIGHTS}), ""); }

TEST(HooksOutsideAStep, InstallTwice) {
  EXPECT_EQ(InCreate({SPF_HOOK_INSTALL_WEIGHTS, SPF_HOOK_INSTALL_WEIGHTS}), "FS-38");
}

TEST(HooksOutsideAStep, OnOneRankOfTwo) {
  EXPECT_EQ(InCreate({SPF_HOOK_INSTALL_WEIGHTS}, 1), "FS-38");
}

TEST(HooksOutsideAStep, StartTwice) {
  EXPECT_EQ(InCreate({SPF_HOOK_START_PARAM_SYNC, SPF_HOOK_START_PARAM_SYNC}), "FS-38");
}

TEST(HooksOutsideAStep, NoStepNoGradients) {
  for (const int32_t hook :
       {SPF_HOOK_ZERO_GRAD, SPF_HOOK_FINISH_GRAD_SYNC, SPF_HOOK_OPTIMIZER_STEP})
    EXPECT_EQ(InCreate({hook}), "FS-38") << hook;
}

// Moves the first mark of a hook on rank 0 behind the nth event, from 0, that is meant.
std::string Moved(int32_t hook, const std::function<bool(const Event&)>& meant, size_t nth = 0) {
  MiniRun mini = TwoMicrobatches();
  std::vector<Event>& events = mini.run.traces[0].events;
  const auto from = std::find_if(events.begin(), events.end(), [&](const Event& event) {
    return event.kind == EventKind::kMark && event.id == hook &&
           (hook != SPF_HOOK_POST_FORWARD || event.module > 0);
  });
  auto to = events.begin();
  for (size_t n = 0; to != events.end() && !(meant(*to) && n++ == nth);) ++to;
  if (from == events.end() || to == events.end()) return "nothing to move";
  if (to < from) {
    std::rotate(to, from, from + 1);
  } else {
    std::rotate(from, from + 1, to + 1);
  }
  return FoundIn(CheckOrder(mini.run));
}
bool ComputesBackward(const Event& event) {
  return event.kind == EventKind::kCompute && event.phase != SPF_FWD;
}
std::function<bool(const Event&)> IsHook(int32_t hook) {
  return [hook](const Event& e) { return e.kind == EventKind::kMark && e.id == hook; };
}

TEST(HooksOfAStep, AccumulatorsAreNotClearedAmongBackwards) {
  EXPECT_EQ(Moved(SPF_HOOK_ZERO_GRAD, ComputesBackward), "FS-38");
  EXPECT_EQ(Moved(SPF_HOOK_ZERO_GRAD, IsHook(SPF_HOOK_FINISH_GRAD_SYNC)), "FS-38");
  EXPECT_EQ(Moved(SPF_HOOK_ZERO_GRAD, IsHook(SPF_HOOK_OPTIMIZER_STEP)), "") << "after it is right";
  EXPECT_EQ(Moved(SPF_HOOK_ZERO_GRAD, IsHook(SPF_HOOK_FORWARD)), "") << "and before backward";
}

TEST(HooksOfAStep, NothingIsHandedOverOnceAllIsDrained) {
  const auto finish = IsHook(SPF_HOOK_FINISH_GRAD_SYNC);
  EXPECT_EQ(Moved(SPF_HOOK_ACCUMULATE, finish), "FS-38");
  EXPECT_EQ(Moved(SPF_HOOK_ROOT_POST_BACKWARD, finish), "FS-38");
}

TEST(HooksOfAUnit, PostForwardComesAfterItsForward) {
  MiniRun mini = TwoMicrobatches();
  const InstanceFacts facts(mini.spec->instances[0], 2);
  const int32_t unit = facts.units(0).front();
  std::vector<Event>& events = mini.run.traces[0].events;
  const auto post = std::find_if(events.begin(), events.end(), [&](const Event& event) {
    return event.kind == EventKind::kMark && event.id == SPF_HOOK_POST_FORWARD &&
           event.module == unit;
  });
  const auto last = std::find_if(std::make_reverse_iterator(post), events.rend(),
                                 [](const Event& e) { return e.kind == EventKind::kCompute; });
  ASSERT_NE(post, events.end());
  ASSERT_NE(last, events.rend());
  std::rotate(last.base() - 1, post, post + 1);
  const std::string found = FoundIn(CheckOrder(mini.run));
  EXPECT_NE(found.find("FS-06"), std::string::npos) << found;
}

}  // namespace
}  // namespace shardproof
