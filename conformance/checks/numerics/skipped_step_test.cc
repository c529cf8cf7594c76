// Steps that grad_norm_skip_threshold leaves out: GE-33, GE-34.
#include <gtest/gtest.h>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/numerics/numerics.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

// The gradient norm of the small engine is 2.
MiniRun RunWithThreshold(double threshold) {
  return RunMini(
      MiniCase(2, [&](InstanceSpec& spec) { spec.skip_norm = threshold, spec.grad_norm = true; }));
}
// The step of call 1 is to be skipped.
void ExpectSkip(MiniRun& mini) {
  mini.oracles[0]->calls[1].updated = false;
  mini.oracles[0]->calls[1].weights = mini.oracles[0]->calls[0].weights;
}
void DropParams(MiniRun& mini, int call) {
  for (Trace& trace : mini.run.traces) {
    std::erase_if(trace.events, [&](const Event& e) {
      return e.kind == EventKind::kPublish && e.result == SPF_RESULT_PARAM && e.call == call;
    });
  }
}
void ReadAsIn(MiniRun& mini, int call, int earlier) {
  for (Trace& trace : mini.run.traces) {
    std::map<int32_t, uint64_t> digest;
    for (const Event& event : trace.events) {
      for (uint32_t k = event.reads.begin; k < event.reads.end; ++k) {
        if (event.call == earlier) digest[trace.reads[k].param] = trace.reads[k].digest;
        if (event.call == call) trace.reads[k].digest = digest[trace.reads[k].param];
      }
    }
  }
}

TEST(SkippedStep, AStepThatIsSkippedAsItShould) {
  MiniRun mini = RunWithThreshold(1);
  ExpectSkip(mini);
  DropParams(mini, 1);
  ReadAsIn(mini, 2, 1);
  const CheckResult result = CheckNumerics(mini.run);
  EXPECT_EQ(FoundIn(result), "") << result.findings[0].message;
  EXPECT_TRUE(result.judged.contains("GE-34"));
}

TEST(SkippedStep, AThresholdThatIsNotReached) {
  EXPECT_EQ(FoundIn(CheckNumerics(RunWithThreshold(3).run)), "");
}

TEST(SkippedStep, AnUpdateThatShouldHaveBeenSkipped) {
  MiniRun mini = RunWithThreshold(1);
  ExpectSkip(mini);
  const CheckResult result = CheckPublished(mini.run);
  ASSERT_EQ(FoundIn(result), "GE-34");
  EXPECT_NE(result.findings[0].message.find(
                "the gradient norm 2 is above grad_norm_skip_threshold = 1: the step must "
                "be skipped"),
            std::string::npos)
      << result.findings[0].message;
}

TEST(SkippedStep, AnUpdateThatIsNotPublishedShowsWhereItIsRead) {
  MiniRun mini = RunWithThreshold(1);
  ExpectSkip(mini);
  DropParams(mini, 1);
  EXPECT_EQ(FoundIn(CheckPublished(mini.run)), "");
  const CheckResult result = CheckReads(mini.run);
  ASSERT_EQ(FoundIn(result), "GE-34");
  EXPECT_NE(result.findings[0].message.find("train_step 0 is to be skipped"), std::string::npos)
      << result.findings[0].message;
}

TEST(SkippedStep, UnchangedParametersAreNotPublished) {
  MiniRun mini = RunWithThreshold(1);
  ExpectSkip(mini);
  for (Trace& trace : mini.run.traces) {
    std::map<int32_t, int64_t> before;
    for (Event& event : trace.events) {
      if (event.kind != EventKind::kPublish || event.result != SPF_RESULT_PARAM) continue;
      if (event.call == 0) before[event.id] = event.values;
      if (event.call == 1) event.values = before.at(event.id);
    }
  }
  EXPECT_EQ(FoundIn(CheckPublished(mini.run)), "GE-33");
}

TEST(SkippedStep, ASkipThatShouldHaveBeenAnUpdate) {
  MiniRun mini = RunWithThreshold(3);
  DropParams(mini, 1);
  const CheckResult result = CheckPublished(mini.run);
  ASSERT_EQ(FoundIn(result), "GE-34");
  EXPECT_NE(result.findings[0].message.find(
                "is not above grad_norm_skip_threshold = 3: the step must update"),
            std::string::npos)
      << result.findings[0].message;
  EXPECT_EQ(result.findings[0].seen, "none published");
}

TEST(SkippedStep, ANormThatIsNoNumberIsAboveEveryThreshold) {
  MiniRun mini = RunWithThreshold(3);
  mini.oracles[0]->calls[1].grad_norm = std::numeric_limits<double>::quiet_NaN();
  ExpectSkip(mini);
  const CheckResult result = CheckPublished(mini.run);
  ASSERT_EQ(FoundIn(result), "GE-34");
  EXPECT_NE(result.findings[0].message.find("the gradient norm NaN is above"), std::string::npos)
      << result.findings[0].message;
}

TEST(SkippedStep, StateThatMovedInASkippedStepIsHintedAt) {
  MiniRun mini = RunWithThreshold(1);
  ExpectSkip(mini);
  DropParams(mini, 1);
  Trace& trace = mini.run.traces[0];
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kPublish || event.result != SPF_RESULT_PARAM || event.call != 2)
      continue;
    trace.values[size_t(event.values) + 1] += 0.5;
    break;
  }
  const CheckResult result = CheckPublished(mini.run);
  ASSERT_EQ(FoundIn(result), "FS-24");
  EXPECT_NE(result.findings[0].message.find("train_step 0 is skipped: state and step count"),
            std::string::npos)
      << result.findings[0].message;
}

}  // namespace
}  // namespace shardproof
