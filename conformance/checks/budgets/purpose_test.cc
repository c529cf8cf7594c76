#include <gtest/gtest.h>

#include "conformance/checks/budgets/budgets.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/checks/testing/mini_layer_wise.h"
#include "conformance/checks/testing/mini_schedule.h"

namespace shardproof {
namespace {

CheckResult Checked(MiniFlag flag, const std::string& script = "ttt") {
  MiniFaults faults;
  faults.flag = flag;
  return CheckPurpose(
      RunMini(MiniCase(2, [&](InstanceSpec& spec) { spec.script = script; }), faults).run);
}

TEST(Purpose, AFlagThatTheHostReads) {
  const CheckResult result = Checked(MiniFlag::kReadOnHost);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("BU-06"));
}

TEST(Purpose, AFlagThatNobodyReads) {
  const CheckResult result = Checked(MiniFlag::kIgnored);
  EXPECT_EQ(FoundIn(result), "BU-06");
  EXPECT_EQ(result.findings.size(), 3u) << "one for each step, of all ranks together";
}

TEST(Purpose, SumsOfIntegersAreLookedAtIfNeeded) {
  MiniFaults faults;
  faults.flag = MiniFlag::kIgnored;
  MiniRun mini = RunMini(MiniCase(2), faults);
  for (Trace& trace : mini.run.traces) {
    for (Event& event : trace.events) {
      if (event.collective == SPF_ALL_REDUCE) event.dtype = SPF_I64;
    }
  }
  EXPECT_EQ(FoundIn(CheckPurpose(mini.run)), "");
}

TEST(Purpose, ACopyAloneIsNoReader) {
  EXPECT_EQ(FoundIn(Checked(MiniFlag::kCopiedAndIgnored)), "BU-06");
}

// What is left of the last step may be for a next one; what that overwrites was for nobody, though
// the next collective has sent it.
TEST(Purpose, ABarrierInPlaceInEachStep) {
  EXPECT_EQ(Checked(MiniFlag::kInPlace).findings.size(), 2u);
  EXPECT_EQ(FoundIn(Checked(MiniFlag::kInPlace, "t")), "");
}

// It may bring loaded values that have no name yet (FS-35, FS-44).
TEST(Purpose, AGatherIsLeftToOthers) {
  MiniFaults faults;
  faults.flag = MiniFlag::kIgnored;
  MiniRun mini = RunMini(MiniCase(2), faults);
  for (Trace& trace : mini.run.traces) {
    for (Event& event : trace.events) {
      if (event.collective != SPF_ALL_REDUCE) continue;
      event.collective = SPF_ALL_GATHER;
      event.count = 1;
    }
  }
  EXPECT_EQ(FoundIn(CheckPurpose(mini.run)), "");
}

TEST(Purpose, ParametersAndGradientsAreOtherRequirements) {
  EXPECT_TRUE(CheckPurpose(RunMini(MiniCase(2)).run).judged.empty());
  EXPECT_EQ(FoundIn(CheckPurpose(RunLayerWise(LayerWiseCase(2)).run)), "");
}

TEST(Purpose, ExchangesOfTokensAreRead) {
  const CheckResult result = CheckPurpose(RunSchedule(ScheduleCase(4, 2)).run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("BU-06"));
}

TEST(Purpose, ARunThatEndedEarlyIsNotJudged) {
  MiniFaults faults;
  faults.flag = MiniFlag::kIgnored;
  MiniRun mini = RunMini(MiniCase(2), faults);
  mini.run.outcomes[1].kind = EngineOutcome::Kind::kFailed;
  EXPECT_EQ(FoundIn(CheckPurpose(mini.run)), "");
}

TEST(Purpose, WithoutMemoryNothingIsSaid) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.traces[1].provides.memory = false;
  EXPECT_EQ(NotCheckableIn(CheckPurpose(mini.run)), std::set<std::string>{"BU-06"});
}

}  // namespace
}  // namespace shardproof
