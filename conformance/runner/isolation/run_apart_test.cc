#include "conformance/runner/isolation/run_apart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <stdexcept>

#include "conformance/runner/isolation/sim_evidence.h"
#include "conformance/runner/judge_on_sim.h"
#include "conformance/trace/writer.h"

namespace shardproof {
namespace {

using ::testing::HasSubstr;

EngineProcessOptions Patient() {
  EngineProcessOptions options;
  options.stall_seconds = 60;
  return options;
}

class RunApartTest : public ::testing::Test {
 protected:
  RunApartTest() { options_.rank.folder = ::testing::TempDir() + "/run_apart_test"; }
  // The run, with something done in the engine's process inside of one entry call.
  RunData With(const std::function<void()>& deed) {
    SimRunOptions sim = options_;
    sim.rank.on_call = [&](std::string_view call, int64_t step, bool begins) {
      if (call == "train_step" && step == 1 && !begins) deed();
    };
    return RunApart("builtin:reference", Patient())(case_, sim);
  }
  const Case case_ = ParseId("w2.zero2");
  const Plugin plugin_{"builtin:reference"};
  SimRunOptions options_;
};

TEST_F(RunApartTest, GivesTheSameTracesAsARunHere) {
  const RunData here = RunHere(plugin_)(case_, options_);
  const RunData apart = With([] {});
  ASSERT_EQ(apart.run.traces.size(), 2u);
  for (size_t rank = 0; rank < 2; ++rank)
    EXPECT_EQ(TraceToText(apart.run.traces[rank]), TraceToText(here.run.traces[rank]));
  EXPECT_EQ(apart.timing_hash, here.timing_hash);
  EXPECT_EQ(apart.run.left_behind, std::vector<std::string>{""});
  EXPECT_EQ(JudgeRun(case_, apart.run).outcome, Outcome::kPass);
}

TEST_F(RunApartTest, ARunThatDoesNotComeBackIsTheEnginesFailure) {
  try {
    With([] { raise(SIGKILL); });
    FAIL() << "it came back";
  } catch (const EngineDied& died) {
    const Verdict verdict = VerdictOf(died);
    EXPECT_EQ(verdict.outcome, Outcome::kFail);
    EXPECT_EQ(verdict.result.findings.at(0).requirement, "GE-26");
    EXPECT_THAT(verdict.result.findings.at(0).seen, HasSubstr("SIGKILL"));
  }
}

TEST_F(RunApartTest, AnExceptionOfTheSuiteIsNot) {
  EXPECT_THROW(RunApart("builtin:nonsense", Patient())(case_, options_), std::runtime_error);
}

TEST_F(RunApartTest, BeforeAnyEngineCodeTheSuiteHasFailed) {
  EXPECT_EQ(VerdictOf({EngineProcessEnd()}).outcome, Outcome::kSuiteError);
}

TEST_F(RunApartTest, WhatIsLeftBehindIsAFinding) {
  const RunData data = With([] {
    rlimit limit{};
    getrlimit(RLIMIT_CPU, &limit);
    limit.rlim_cur = 3600;
    setrlimit(RLIMIT_CPU, &limit);
    if (fork() != 0) return;
    while (true) pause();
  });
  ASSERT_EQ(data.run.left_behind.size(), 1u);
  EXPECT_THAT(data.run.left_behind[0], HasSubstr("the limit RLIMIT_CPU is 3600"));
  EXPECT_THAT(data.run.left_behind[0], HasSubstr("still ran when the engine's process had ended"));
  const Verdict verdict = JudgeRun(case_, data.run);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_EQ(verdict.result.findings.at(0).requirement, "GE-37");
}

// A partner that leaves something behind counts too, although its own verdict is not asked for.
TEST_F(RunApartTest, WhatAPartnerLeavesBehindIsAFinding) {
  int runs = 0;
  const RunCase second_is_dirty = [&](const Case& c, const SimRunOptions& options) {
    RunData data = RunHere(plugin_)(c, options);
    data.run.left_behind = {++runs == 2 ? "a process (sleep) still ran" : ""};
    return data;
  };
  const Verdict verdict = JudgeOnSim(case_, second_is_dirty, options_);
  EXPECT_GE(runs, 2);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
}

TEST_F(RunApartTest, EvidenceOfAnotherRunIsRefused) {
  const Frame fields = FieldsOf(RunHere(plugin_)(case_, options_));
  const FrameView evidence(fields.begin(), fields.end());
  EXPECT_EQ(RunDataOf(evidence, case_).run.traces.size(), 2u);
  const Case other = ParseId("w2.zero3"), larger = ParseId("w4.zero2");
  EXPECT_THROW(RunDataOf(evidence, other), std::runtime_error);
  EXPECT_THROW(RunDataOf(evidence, larger), std::runtime_error);
  for (size_t field = 0; field < evidence.size(); ++field) {
    FrameView changed = evidence;
    changed[field] = "nonsense";
    const bool text = field >= 4 && (field - 4) % kFieldsOfARank != 0 &&
                      (field - 4) % kFieldsOfARank != 3;  // words of the engine
    if (!text) {
      EXPECT_THROW(RunDataOf(changed, case_), std::runtime_error) << field;
    }
    changed = evidence;
    changed.pop_back();
    EXPECT_THROW(RunDataOf(changed, case_), std::runtime_error);
  }
}

}  // namespace
}  // namespace shardproof
