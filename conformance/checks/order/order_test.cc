#include "conformance/checks/order/order.h"

#include <gtest/gtest.h>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

std::string Found(const MiniFaults& faults, const std::function<void(InstanceSpec&)>& edit = {}) {
  return FoundIn(CheckOrder(RunMini(MiniCase(2, edit), faults).run));
}
void TwoMicrobatches(InstanceSpec& spec) { spec.microbatches = 2; }

// Exchanges the places of the first two marks of these hooks on rank 0.
void SwapMarks(Run& run, int first, int second) {
  Event* found[2] = {nullptr, nullptr};
  for (Event& event : run.traces[0].events) {
    if (event.kind != EventKind::kMark) continue;
    if (event.id == first && found[0] == nullptr) found[0] = &event;
    if (event.id == second && found[1] == nullptr && found[0] != nullptr) found[1] = &event;
  }
  std::swap(*found[0], *found[1]);
}

TEST(Order, AGoodRunHasNoFinding) {
  const CheckResult result = CheckOrder(RunMini(MiniCase(4, TwoMicrobatches)).run);
  EXPECT_EQ(FoundIn(result), "") << (result.findings.empty() ? "" : result.findings[0].message);
  for (const char* id : {"FS-04", "FS-06", "FS-08", "FS-35", "FS-38", "FS-39", "FS-44"})
    EXPECT_TRUE(result.judged.contains(id)) << id;
}

TEST(Order, WithoutMarksOnlyEffectsAreJudged) {
  MiniFaults faults;
  faults.marks = false;
  const CheckResult result = CheckOrder(RunMini(MiniCase(2), faults).run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_FALSE(result.judged.contains("FS-04"));
  EXPECT_TRUE(result.judged.contains("FS-08"));
  ASSERT_FALSE(result.not_checkable.empty());
  EXPECT_EQ(result.not_checkable[0].why,
            "the engine announces no hooks: call mark() to have their order judged");
}

TEST(Order, RootPreBackwardTwice) {
  MiniFaults faults;
  faults.root_pre_backward_twice = true;
  EXPECT_EQ(Found(faults), "FS-04");
}

TEST(Order, AccumulateForgottenForOneUnit) {
  MiniRun mini = RunMini(MiniCase(2));
  std::vector<Event>& events = mini.run.traces[1].events;
  events.erase(std::find_if(events.begin(), events.end(), [](const Event& event) {
    return event.kind == EventKind::kMark && event.id == SPF_HOOK_ACCUMULATE && event.module > 0;
  }));
  EXPECT_EQ(FoundIn(CheckOrder(mini.run)), "FS-04");
}

// A weight that the embedding shares with the head is of the root: the embedding's unit has no
// gradient to hand over, whether it is announced or not.
TEST(Order, AUnitWithoutGradientsOfItsOwnNeedNotHandOver) {
  for (const bool tied : {true, false}) {
    MiniRun mini = RunMini(MiniCase(2, [tied](InstanceSpec& spec) {
      spec.units = "TransformerLayer,Embedding";
      spec.model.tied = tied;
    }));
    EXPECT_EQ(FoundIn(CheckOrder(mini.run)), "") << tied;
    const InstanceFacts facts(mini.run.spec->instances.front(), 2);
    const auto is_of_embedding = [&](const Event& event) {
      return event.kind == EventKind::kMark && event.id == SPF_HOOK_ACCUMULATE &&
             facts.ModuleName(event.module, 1) == "embedding";
    };
    std::vector<Event>& events = mini.run.traces[1].events;
    const std::vector<Event> once = events;
    const auto of_embedding = std::ranges::find_if(events, is_of_embedding);
    ASSERT_NE(of_embedding, events.end());
    events.insert(of_embedding, Event(*of_embedding));
    EXPECT_EQ(FoundIn(CheckOrder(mini.run)), "FS-04") << "twice";
    events = once;
    EXPECT_GT(std::erase_if(events, is_of_embedding), 0u);
    EXPECT_EQ(FoundIn(CheckOrder(mini.run)), tied ? "" : "FS-04");
  }
}

TEST(Order, OptimizerBeforeGradientsAreFinished) {
  MiniRun mini = RunMini(MiniCase(2));
  SwapMarks(mini.run, SPF_HOOK_FINISH_GRAD_SYNC, SPF_HOOK_OPTIMIZER_STEP);
  EXPECT_EQ(FoundIn(CheckOrder(mini.run)), "FS-38");
}

TEST(Order, InstallBeforeTheOptimizer) {
  MiniRun mini = RunMini(MiniCase(2));
  SwapMarks(mini.run, SPF_HOOK_OPTIMIZER_STEP, SPF_HOOK_INSTALL_WEIGHTS);
  EXPECT_EQ(FoundIn(CheckOrder(mini.run)), "FS-38");
}

// Call 1, a train_step, goes without INSTALL_WEIGHTS; skipped: without parameters too.
MiniRun WithoutInstall(bool skipped, double threshold) {
  MiniRun mini = RunMini(
      MiniCase(2, [&](InstanceSpec& spec) { spec.skip_norm = threshold, spec.grad_norm = true; }));
  for (Trace& trace : mini.run.traces) {
    std::erase_if(trace.events, [&](const Event& e) {
      const bool install = e.kind == EventKind::kMark && e.id == SPF_HOOK_INSTALL_WEIGHTS;
      const bool param = e.kind == EventKind::kPublish && e.result == SPF_RESULT_PARAM;
      return e.call == 1 && (install || (param && skipped));
    });
  }
  return mini;
}

TEST(Order, ASkippedStepInstallsNothing) {
  EXPECT_EQ(FoundIn(CheckOrder(WithoutInstall(true, 1).run)), "");
}

TEST(Order, AStepThatIsNotSkippedInstalls) {
  EXPECT_EQ(FoundIn(CheckOrder(WithoutInstall(false, 1).run)), "FS-38");
  EXPECT_EQ(FoundIn(CheckOrder(WithoutInstall(true, 0).run)), "FS-38") << "there is no threshold";
}

TEST(Order, ASkippedStepAnnouncesNoHookTwice) {
  MiniRun mini = WithoutInstall(true, 1);
  std::vector<Event>& events = mini.run.traces[0].events;
  const auto optimizer = std::find_if(events.begin(), events.end(), [](const Event& e) {
    return e.kind == EventKind::kMark && e.id == SPF_HOOK_OPTIMIZER_STEP && e.call == 1;
  });
  ASSERT_NE(optimizer, events.end());
  events.insert(optimizer, Event(*optimizer));
  EXPECT_EQ(FoundIn(CheckOrder(mini.run)), "FS-38");
}

TEST(Order, BackwardOfAUnitThatIsInForward) {
  MiniRun mini = RunMini(MiniCase(2));
  std::vector<Event>& events = mini.run.traces[0].events;
  events.erase(std::find_if(events.begin(), events.end(), [](const Event& event) {
    return event.kind == EventKind::kMark && event.id == SPF_HOOK_POST_FORWARD;
  }));
  EXPECT_EQ(FoundIn(CheckOrder(mini.run)), "FS-06");
}

TEST(Order, AHookWithoutItsEffect) {
  MiniFaults faults;
  faults.no_release_forward = true;
  const std::string found = Found(faults);
  EXPECT_NE(found.find("FS-39"), std::string::npos) << found;
}

// Moves a gather behind the first operation of its unit in this phase, to the first one that reads
// what it brings. Whether there was such a gather.
bool GatherLate(Trace& trace, const InstanceFacts& facts, int phase) {
  std::vector<Event>& events = trace.events;
  const auto reads = [&](const Event& compute, int32_t block) {
    return std::any_of(trace.ranges.begin() + compute.ranges.begin,
                       trace.ranges.begin() + compute.ranges.end,
                       [&](const Range& range) { return range.alloc == block; });
  };
  for (size_t gather = 0; gather < events.size(); ++gather) {
    if (events[gather].collective != SPF_ALL_GATHER) continue;
    const int32_t block = trace.ranges[events[gather].ranges.begin + 1].alloc;
    int32_t first = -1;  // the unit of the first operation behind the gather
    for (size_t i = gather + 1; i < events.size(); ++i) {
      if (events[i].kind != EventKind::kCompute) continue;
      const int32_t unit =
          facts.UnitOfModule(facts.Node(events[i].id, trace.rank).module, trace.rank);
      if (events[i].phase != phase || unit < 0 || (first >= 0 && unit != first)) break;
      if (reads(events[i], block)) {
        if (first < 0) break;  // it is needed at once
        std::rotate(events.begin() + static_cast<std::ptrdiff_t>(gather),
                    events.begin() + static_cast<std::ptrdiff_t>(gather) + 1,
                    events.begin() + static_cast<std::ptrdiff_t>(i));
        return true;
      }
      first = unit;
    }
  }
  return false;
}

TEST(Order, AParameterGatheredAfterItsUnitHasBegun) {
  for (const int phase : {SPF_FWD, SPF_BWD}) {
    MiniRun mini = RunMini(MiniCase(2));
    const InstanceFacts facts(mini.spec->instances[0], 2);
    for (Trace& trace : mini.run.traces) ASSERT_TRUE(GatherLate(trace, facts, phase)) << phase;
    const CheckResult result = CheckOrder(mini.run);
    EXPECT_NE(FoundIn(result).find("FS-39"), std::string::npos) << FoundIn(result);
    EXPECT_NE(result.findings[0].message.find("come only while it computes"), std::string::npos)
        << result.findings[0].message;
  }
}

// Before each gather the hook of the module that computes next: it is gathered by itself.
void AnnounceInner(Trace& trace, const InstanceFacts& facts, int32_t hook) {
  std::vector<Event> with;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const auto next =
        std::find_if(trace.events.begin() + static_cast<std::ptrdiff_t>(i), trace.events.end(),
                     [](const Event& event) { return event.kind == EventKind::kCompute; });
    if (trace.events[i].collective == SPF_ALL_GATHER && next != trace.events.end()) {
      Event mark = *next;
      mark.module = facts.Node(next->id, trace.rank).module;
      mark.kind = EventKind::kMark;
      mark.id = hook;
      if (facts.UnitOfModule(mark.module, 0) != mark.module) with.push_back(mark);
    }
    with.push_back(trace.events[i]);
  }
  trace.events = std::move(with);
}

TEST(Order, AModuleInsideAUnitThatIsGatheredByItselfIsNotLate) {
  for (const int phase : {SPF_FWD, SPF_BWD}) {
    MiniRun mini = RunMini(MiniCase(2));
    const InstanceFacts facts(mini.spec->instances[0], 2);
    for (Trace& trace : mini.run.traces) {
      ASSERT_TRUE(GatherLate(trace, facts, phase)) << phase;
      AnnounceInner(trace, facts, phase == SPF_FWD ? SPF_HOOK_PRE_FORWARD : SPF_HOOK_PRE_BACKWARD);
    }
    for (const Finding& finding : CheckOrder(mini.run).findings)
      EXPECT_EQ(finding.message.find("come only while it computes"), std::string::npos)
          << finding.message;
  }
}

// Of each requirement: without the hooks that it speaks of it is not judged, whatever else is
// announced.
TEST(Order, WhatNoAnnouncedHookSpeaksOfIsNotJudged) {
  MiniRun mini = RunMini(MiniCase(2));
  for (Trace& trace : mini.run.traces)
    std::erase_if(trace.events, [](const Event& event) {
      return event.kind == EventKind::kMark && event.id != SPF_HOOK_FORWARD;
    });
  const CheckResult root = CheckOrder(mini.run);
  EXPECT_EQ(FoundIn(root), "");
  EXPECT_TRUE(root.judged.contains("FS-04"));
  for (const char* id : {"FS-06", "FS-38", "FS-39"}) EXPECT_FALSE(root.judged.contains(id)) << id;
}

// The next unit is gathered ahead in this entry call, and in no other.
CheckResult WithPrefetchIn(int32_t call) {
  MiniFaults ahead;
  ahead.prefetch = 1;
  ahead.prefetch_call = call;
  return CheckOrder(RunMini(MiniCase(2), ahead).run);
}

TEST(Order, APrefetchThatTheSecondStepHasLost) {
  const CheckResult result = WithPrefetchIn(1);
  ASSERT_EQ(FoundIn(result), "FS-45");
  EXPECT_NE(result.findings[0].message.find("train_step 0 has it, train_step 1 has not"),
            std::string::npos)
      << result.findings[0].message;
}

TEST(Order, APrefetchThatBeginsWithTheSecondStepIsNotLost) {
  const CheckResult result = WithPrefetchIn(2);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("FS-45"));
}

TEST(Order, APrefetchInEveryStep) { EXPECT_EQ(FoundIn(WithPrefetchIn(-1)), ""); }

TEST(Order, UnitsGatheredInTheWrongDirection) {
  MiniFaults faults;
  faults.gather_reversed = true;
  EXPECT_EQ(Found(faults), "FS-08");
}

TEST(Order, AGoodRunWithRecomputeHasNoFinding) {
  const CheckResult result =
      CheckOrder(RunMini(MiniCase(2, [](InstanceSpec& spec) { spec.recompute = true; })).run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("FS-07"));
}

TEST(Order, RecomputeThatPrefetchesForwardUnits) {
  MiniFaults faults;
  faults.recompute_prefetch = true;
  const std::string found = Found(faults, [](InstanceSpec& spec) { spec.recompute = true; });
  EXPECT_NE(found.find("FS-07"), std::string::npos) << found;
}

TEST(Order, AUnitThatIsGatheredAndDroppedUnread) {
  MiniFaults faults;
  faults.recompute_prefetch = true;
  EXPECT_EQ(Found(faults), "FS-44") << "wasted, and nothing else";
}

// Each parameter is gathered again once a node has read it.
std::string FoundInGatheredAgain(const std::function<void(InstanceSpec&)>& edit,
                                 bool in_backward_alone) {
  MiniRun mini = RunMini(MiniCase(2, edit));
  for (Trace& trace : mini.run.traces) {
    std::map<int32_t, Event> unread;  // by block that receives
    std::vector<Event> events;
    for (const Event& event : trace.events) {
      events.push_back(event);
      if (event.kind == EventKind::kCollective && event.collective == SPF_ALL_GATHER)
        unread[trace.ranges[event.ranges.begin + 1].alloc] = event;
      for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i) {
        const auto at = unread.find(trace.ranges[i].alloc);
        if (event.kind != EventKind::kCompute || at == unread.end()) continue;
        if (!in_backward_alone || event.phase != SPF_FWD) events.push_back(at->second);
        unread.erase(at);
      }
    }
    trace.events = std::move(events);
  }
  return FoundIn(CheckOrder(mini.run));
}

TEST(Order, AParameterGatheredMoreOftenThanNeeded) {
  const std::string found = FoundInGatheredAgain({}, false);
  EXPECT_NE(found.find("FS-35"), std::string::npos) << found;
}

// Where a layer of several units is run again, each comes once more.
TEST(Order, APartOfALayerThatIsRunAgainIsGatheredForThatToo) {
  for (const bool recompute : {false, true}) {
    for (const std::string units : {"Attention,MLP", "TransformerLayer"}) {
      const auto edit = [&](InstanceSpec& spec) {
        spec.recompute = recompute;
        spec.units = units;
      };
      const bool legal = recompute && units == "Attention,MLP";
      const std::string found = FoundInGatheredAgain(edit, true);
      EXPECT_EQ(found.find("FS-35") == std::string::npos, legal) << units << ": " << found;
    }
  }
}

TEST(Order, GatherOncePerStepWithOptim) {
  const std::string found =
      Found({}, [](InstanceSpec& spec) { spec.strategy = ShardingStrategy::kOptim; });
  EXPECT_EQ(found, "FS-35") << "the mini engine gathers in forward and in backward";
}

TEST(Order, NanGuardPresent) {
  EXPECT_EQ(Found({}, [](InstanceSpec& spec) { spec.check_for_nan = true; }), "");
}

TEST(Order, NanGuardMissing) {
  MiniFaults faults;
  faults.no_nan_guard = true;
  EXPECT_EQ(Found(faults, [](InstanceSpec& spec) { spec.check_for_nan = true; }), "FS-26");
}

}  // namespace
}  // namespace shardproof
