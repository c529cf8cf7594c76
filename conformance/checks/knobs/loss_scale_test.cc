// The scale of losses: traces in which backward begins with it, and with another one.
#include <gtest/gtest.h>

#include <string>

#include "conformance/checks/knobs/knobs.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

// The engine gives this scale to every backward of a rank, or of all; "": none.
MiniRun Given(const std::string& scale, int32_t rank = -1) {
  MiniRun mini = RunMini(MiniCase(2, [](InstanceSpec& spec) { spec.loss_scale_log2 = 3; }));
  for (Trace& trace : mini.run.traces) {
    if (scale.empty() || (rank >= 0 && rank != trace.rank)) continue;
    trace.strings.push_back(scale);
    for (Event& event : trace.events) {
      if (event.kind == EventKind::kCompute && event.phase != SPF_FWD)
        event.text = static_cast<int32_t>(trace.strings.size()) - 1;
    }
  }
  return mini;
}

TEST(LossScale, BackwardBeginsWithIt) {
  const MiniRun mini = Given("8");
  const CheckResult result = CheckLossScale(mini.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("KN-09"));
}

TEST(LossScale, AnotherOneIsFound) {
  for (const char* scale : {"", "1", "4", "16", "eight"}) {
    const MiniRun mini = Given(scale);
    EXPECT_EQ(FoundIn(CheckLossScale(mini.run)), "KN-09") << scale;
  }
}

TEST(LossScale, OnOneRankItIsFoundOnTheOther) {
  const MiniRun mini = Given("8", 0);
  const CheckResult result = CheckLossScale(mini.run);
  EXPECT_EQ(FoundIn(result), "KN-09");
  for (const Finding& finding : result.findings) EXPECT_EQ(finding.rank, 1);
}

TEST(LossScale, WithoutTheKnobNothingIsJudged) {
  const MiniRun mini = RunMini(MiniCase(2));
  EXPECT_TRUE(CheckLossScale(mini.run).judged.empty());
}

}  // namespace
}  // namespace shardproof
