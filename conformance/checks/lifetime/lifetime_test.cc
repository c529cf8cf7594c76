#include "conformance/checks/lifetime/lifetime.h"

#include <gtest/gtest.h>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/checks/testing/mini_schedule.h"

namespace shardproof {
namespace {

std::string Found(const MiniFaults& faults, const std::function<void(InstanceSpec&)>& edit = {}) {
  return FoundIn(CheckLifetime(RunMini(MiniCase(2, edit), faults).run));
}

TEST(Lifetime, AGoodRunHasNoFinding) {
  const CheckResult result = CheckLifetime(RunMini(MiniCase(4)).run);
  EXPECT_EQ(FoundIn(result), "") << (result.findings.empty() ? "" : result.findings[0].message);
  for (const char* id : {"FS-02", "FS-03", "FS-09", "FS-31", "FS-32", "FS-33"})
    EXPECT_TRUE(result.judged.contains(id)) << id;
}

TEST(Lifetime, AGoodRunWithEvalHasNoFinding) {
  EXPECT_EQ(Found({}, [](InstanceSpec& spec) { spec.script = "tet"; }), "");
}

TEST(Lifetime, AUnitThatStaysAfterItsForward) {
  MiniFaults faults;
  faults.no_release_forward = true;
  EXPECT_EQ(Found(faults), "FS-03");
}

TEST(Lifetime, AUnitThatStaysAfterEvalIsFound) {
  MiniFaults faults;
  faults.no_release_forward = true;
  const std::string found = Found(faults, [](InstanceSpec& spec) { spec.script = "et"; });
  EXPECT_NE(found.find("FS-13"), std::string::npos) << found;
}

TEST(Lifetime, WhatIsOutsideUnitsStaysAfterAnEval) {
  MiniFaults faults;
  faults.no_release_at_end = true;
  const std::string found = Found(faults, [](InstanceSpec& spec) { spec.script = "et"; });
  EXPECT_NE(found.find("FS-13"), std::string::npos) << found;
  EXPECT_EQ(Found(faults).find("FS-13"), std::string::npos) << "there is no eval";
}

TEST(Lifetime, PrefetchWithinTheDefaultOfOneUnit) {
  MiniFaults faults;
  faults.prefetch = 1;
  EXPECT_EQ(Found(faults, [](InstanceSpec& spec) { spec.prefetch_limit_bytes = -1; }), "");
}

TEST(Lifetime, PrefetchOfTwoUnitsExceedsTheDefault) {
  MiniFaults faults;
  faults.prefetch = 2;
  EXPECT_EQ(Found(faults, [](InstanceSpec& spec) { spec.prefetch_limit_bytes = -1; }), "FS-09");
}

TEST(Lifetime, PrefetchWithALimitOfZero) {
  MiniFaults faults;
  faults.prefetch = 1;
  EXPECT_EQ(Found(faults), "FS-09");
}

// Where two microbatches interleave, a limit of 0 is one all the same.
TEST(Lifetime, NothingIsAheadUnderTheScheduleWithALimitOfZero) {
  const auto checked = [](int64_t limit, const ScheduleFaults& faults) {
    const Case c =
        ScheduleCase(4, 2, [&](InstanceSpec& spec) { spec.prefetch_limit_bytes = limit; });
    return CheckUnitWindows(RunSchedule(c, faults).run);
  };
  const CheckResult good = checked(0, {});
  EXPECT_EQ(FoundIn(good), "") << (good.findings.empty() ? "" : good.findings[0].seen);
  EXPECT_TRUE(good.judged.contains("FS-09"));
  ScheduleFaults ahead;
  ahead.gather_all = true;
  EXPECT_EQ(FoundIn(checked(0, ahead)), "FS-09");
  EXPECT_EQ(FoundIn(checked(-1, ahead)), "");
}

TEST(Lifetime, AReadFromABlockThatWasFreedIsPoison) {
  MiniRun mini = RunMini(MiniCase(2));
  // A gather that never ran into the block that is read: redirect it to another block.
  Trace& trace = mini.run.traces[0];
  for (Event& event : trace.events) {
    if (event.kind != EventKind::kCollective || event.collective != SPF_ALL_GATHER) continue;
    trace.ranges[event.ranges.begin + 1].alloc = 0;
    break;
  }
  const std::string found = FoundIn(CheckLifetime(mini.run));
  EXPECT_TRUE(found == "FS-14" || found == "FS-02") << found;
}

TEST(Lifetime, MemoryThatGrowsFromStepToStep) {
  MiniFaults faults;
  faults.drift = true;
  EXPECT_EQ(Found(faults), "FS-32");
}

TEST(Lifetime, ABlockLeftBehindByDestroy) {
  MiniFaults faults;
  faults.leak = true;
  EXPECT_EQ(Found(faults), "FS-33");
}

TEST(Lifetime, LeaksAreNotJudgedAfterAnError) {
  MiniFaults faults;
  faults.leak = true;
  MiniRun mini = RunMini(MiniCase(2), faults);
  mini.run.outcomes[1].kind = EngineOutcome::Kind::kFailed;
  EXPECT_EQ(FoundIn(CheckLifetime(mini.run)), "");
}

TEST(Lifetime, FullParametersKeptAtRest) {
  MiniRun mini = RunMini(MiniCase(2));
  Trace& trace = mini.run.traces[1];
  for (Event& event : trace.events) {
    if (event.kind == EventKind::kAlloc && event.call == 0) event.count *= 4;
  }
  const std::string found = FoundIn(CheckLifetime(mini.run));
  EXPECT_EQ(found, "FS-31");
}

TEST(Lifetime, ABlockFreedTwiceInAForeignTrace) {
  TraceBuilder t(0, 1);
  t.CallBegin("create");
  const int s = t.Stream("s"), block = t.Alloc(s, 64);
  t.Free(s, block);
  t.Free(s, block);
  t.StreamDestroy(s);
  shardproof::Run run;
  run.traces.push_back(t.Done());
  EXPECT_EQ(FoundIn(CheckLifetime(run)), "FS-33");
}

TEST(Lifetime, RegistrableMemoryCountsAsDeviceMemory) {
  for (const int place : {SPF_DEVICE, SPF_REGISTRABLE, SPF_PINNED}) {
    TraceBuilder t(0, 1);
    t.CallBegin("create");
    const int s = t.Stream("s");
    t.CallEnd("create");
    std::vector<int> blocks;
    for (int step = 0; step < 2; ++step) {
      t.CallBegin("train_step", step);
      blocks.push_back(t.Alloc(s, 64, {}, place));
      t.CallEnd("train_step", step);
    }
    t.CallBegin("destroy");
    for (const int block : blocks) t.Free(s, block);
    t.StreamDestroy(s);
    t.CallEnd("destroy");
    shardproof::Run run;
    run.traces.push_back(t.Done());
    EXPECT_EQ(FoundIn(CheckLifetime(run)), place == SPF_PINNED ? "" : "FS-32") << place;
  }
}

TEST(Lifetime, ABlockThatStaysRegisteredIsLeftBehind) {
  TraceBuilder t(0, 1);
  t.CallBegin("create");
  const int group = t.Group("dp_cp", {0}), s = t.Stream("s");
  t.GroupRegister(group, t.Alloc(s, 64, {}, SPF_REGISTRABLE));
  t.CallEnd("create");
  t.CallBegin("destroy");
  t.Refused("mem_free", "block 0 is registered");
  t.StreamDestroy(s);
  t.CallEnd("destroy");
  shardproof::Run run;
  run.traces.push_back(t.Done());
  EXPECT_EQ(FoundIn(CheckLifetime(run)), "FS-33");
}

// A rank that gives its blocks back to a pool has none left; the pool need not free them.
std::string FoundAfterRelease(bool released, bool freed) {
  TraceBuilder t(0, 1);
  t.CallBegin("create");
  const int s = t.Stream("s"), block = t.Alloc(s, 64);
  t.CallEnd("create");
  t.CallBegin("destroy");
  if (released) t.Release(block);
  if (freed) t.Free(s, block);
  t.StreamDestroy(s);
  t.CallEnd("destroy");
  shardproof::Run run;
  run.traces.push_back(t.Done());
  return FoundIn(CheckLifetime(run));
}

TEST(Lifetime, ABlockThatWasReleasedIsNotLeftBehind) {
  EXPECT_EQ(FoundAfterRelease(true, false), "");
  EXPECT_EQ(FoundAfterRelease(true, true), "");
  EXPECT_EQ(FoundAfterRelease(false, false), "FS-33");
}

// What a unit gathered is gone when it is released, whenever the pool takes the bytes.
TEST(Lifetime, AUnitsWindowEndsWithTheRelease) {
  for (const bool in_time : {true, false}) {
    MiniRun mini = RunMini(MiniCase(2), {.no_release_forward = !in_time});
    for (Trace& trace : mini.run.traces) {
      for (Event& event : trace.events) {
        if (event.kind == EventKind::kFree) event.kind = EventKind::kRelease;
      }
    }
    EXPECT_EQ(FoundIn(CheckLifetime(mini.run)), in_time ? "" : "FS-03");
  }
}

TEST(Lifetime, WithoutMemoryEventsNothingIsJudged) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.traces[0].provides.memory = false;
  const CheckResult result = CheckLifetime(mini.run);
  EXPECT_TRUE(result.judged.empty());
  EXPECT_FALSE(result.not_checkable.empty());
}

}  // namespace
}  // namespace shardproof
