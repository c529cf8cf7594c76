// Whether small engines leave the order of collectives to whom the case says (knob schedule).
#include <gtest/gtest.h>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/graph/comm_schedule.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/checks/testing/mini_schedule.h"

namespace shardproof {
namespace {

void OneCommunicator(InstanceSpec& spec) { spec.schedule = CommSchedule::kOneCommunicator; }
void OneQueue(InstanceSpec& spec) { spec.schedule = CommSchedule::kOneQueue; }

CheckResult Judged(const Run& run) {
  const Analysis a(run);
  return CheckCommSchedule(*run.spec, a.lowered());
}

// Gathers, reductions and all-to-alls have streams and communicators of their own.
TEST(CommScheduleFamilies, AnEngineThatChainsAllCollectivesHasOneInFlight) {
  const ScheduleRun made = RunSchedule(ScheduleCase(4, 2, OneCommunicator), {.in_turn = true});
  const CheckResult result = Judged(made.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("GE-41"));
}

TEST(CommScheduleFamilies, WhatIsNotChainedIsFound) {
  const ScheduleFaults faults[] = {{}, {.in_turn = true, .a2a_out_of_turn = true}};
  for (const ScheduleFaults& fault : faults) {
    const ScheduleRun made = RunSchedule(ScheduleCase(4, 2, OneCommunicator), fault);
    EXPECT_EQ(FoundIn(Judged(made.run)), "GE-41");
  }
}

TEST(CommScheduleFamilies, OneQueueIsJudgedWhateverIsInFlight) {
  const ScheduleRun made = RunSchedule(ScheduleCase(4, 2, OneQueue));
  const CheckResult result = Judged(made.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_EQ(result.judged, std::set<std::string>{"GE-42"});
}

// One stream a rank keeps everything apart; a rank alone shows nothing, and nothing is missing.
TEST(CommScheduleFamilies, AnEngineOfOneStreamPasses) {
  const MiniRun made = RunMini(MiniCase(4, OneCommunicator));
  EXPECT_EQ(FoundIn(Judged(made.run)), "");
  EXPECT_TRUE(Judged(made.run).judged.contains("GE-41"));
  const MiniRun alone = RunMini(MiniCase(1, OneCommunicator));
  const CheckResult result = Judged(alone.run);
  EXPECT_TRUE(result.judged.empty());
  ASSERT_EQ(result.not_checkable.size(), 1u);
  EXPECT_EQ(result.not_checkable[0].kind, NotCheckable::Kind::kNotAsked);
}

}  // namespace
}  // namespace shardproof
