#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/checks/budgets/budgets.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

TEST(Pinned, AGoodRunHasNoFinding) {
  MiniFaults faults;
  faults.flag = MiniFlag::kReadOnHost;  // a pinned block that goes in the same step
  const CheckResult result = CheckPinned(RunMini(MiniCase(2), faults).run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("BU-03"));
}

TEST(Pinned, ABlockMoreInEachStep) {
  MiniFaults faults;
  faults.pinned_drift = true;
  faults.rank = 1;
  const CheckResult result = CheckPinned(RunMini(MiniCase(2), faults).run);
  EXPECT_EQ(FoundIn(result), "BU-03");
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.findings[0].rank, 1);
  EXPECT_EQ(result.findings[0].seen, "128 bytes");
}

MiniRun Scripted(const std::string& script, const MiniFaults& faults = {}) {
  return RunMini(MiniCase(2, [&](InstanceSpec& spec) { spec.script = script; }), faults);
}

TEST(Pinned, ABlockMoreInEachEvaluation) {
  MiniFaults faults;
  faults.pinned_eval_drift = true;
  faults.rank = 1;
  for (const char* script : {"tee", "ete", "etete"}) {
    const CheckResult result = CheckPinned(Scripted(script, faults).run);
    EXPECT_EQ(FoundIn(result), "BU-03") << script;
    ASSERT_FALSE(result.findings.empty());
    EXPECT_EQ(result.findings[0].rank, 1);
  }
  EXPECT_EQ(FoundIn(CheckPinned(Scripted("te", faults).run)), "") << "it may make what it keeps";
}

// One step shows no growth.
TEST(Pinned, OneStepOfAKindJudgesNothing) {
  for (const char* script : {"t", "te", "e"}) {
    MiniFaults faults;
    faults.pinned_drift = true;
    const MiniRun mini = Scripted(script, faults);
    EXPECT_TRUE(CheckPinned(mini.run).judged.empty()) << script;
  }
  for (const char* script : {"tt", "tee"}) {
    const MiniRun mini = Scripted(script);
    EXPECT_TRUE(CheckPinned(mini.run).judged.contains("BU-03")) << script;
  }
}

TEST(Pinned, DeviceMemoryIsAnotherRequirements) {
  MiniFaults faults;
  faults.drift = true;
  EXPECT_EQ(FoundIn(CheckPinned(RunMini(MiniCase(2), faults).run)), "");
}

// A save makes its staging buffer when it is first called, and keeps it.
TEST(Pinned, WhatASaveMakesMayStay) {
  const Case c = MiniCase(1, [](InstanceSpec& spec) { spec.script = "tst"; });
  MiniRun mini = RunMini(c);
  Trace& trace = mini.run.traces[0];
  const auto save = std::find_if(trace.events.begin(), trace.events.end(), [&](const Event& event) {
    return event.kind == EventKind::kCallEnd && trace.Text(event.text) == "save";
  });
  ASSERT_NE(save, trace.events.end());
  Event made;
  made.kind = EventKind::kAlloc;
  made.id = SPF_PINNED;
  made.alloc = 1 << 20;
  made.count = 4096;
  made.call = save->call;
  trace.events.insert(save, made);
  EXPECT_EQ(FoundIn(CheckPinned(mini.run)), "");
}

TEST(Pinned, WithoutMemoryOrCallsNothingIsSaid) {
  for (bool Provides::*entry : {&Provides::memory, &Provides::calls}) {
    MiniRun mini = RunMini(MiniCase(2));
    mini.run.traces[0].provides.*entry = false;
    const CheckResult result = CheckPinned(mini.run);
    EXPECT_TRUE(result.judged.empty());
    EXPECT_EQ(NotCheckableIn(result), std::set<std::string>{"BU-03"});
  }
}

}  // namespace
}  // namespace shardproof
