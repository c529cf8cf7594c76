#include "conformance/checks/must_fail.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

using Kind = EngineOutcome::Kind;

// Two ranks; the sample whose loss is NaN is rank 1's.
MiniRun Asked() {
  return RunMini(
      MiniCase(2, [](InstanceSpec& spec) { spec.check_for_nan = spec.model.nan_loss = true; }));
}

std::string Guarded(const Run& run) {
  for (const Finding& finding : CheckMustFail(run).findings) {
    if (finding.requirement == "FS-26") return finding.message;
  }
  return "";
}

// The trace up to and with the end of train step 1's n-th reduction, from 1 on; 0: up to the first.
void CutInStepOne(Trace& trace, int reductions) {
  int step = -1, seen = 0;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind == EventKind::kCallBegin && trace.Text(event.text).starts_with("train_step"))
      ++step;
    const bool reduces =
        event.kind == EventKind::kCollective &&
        (event.collective == SPF_REDUCE_SCATTER || event.collective == SPF_ALL_REDUCE);
    if (step != 1 || !reduces || seen++ < reductions) continue;
    trace.events.resize(i);
    trace.end = TraceEnd::kAborted;
    return;
  }
}

MiniRun Stopped(int reductions) {
  MiniRun mini = Asked();
  for (Trace& trace : mini.run.traces) CutInStepOne(trace, reductions);
  mini.run.outcomes[0] = {Kind::kAborted, "train_step 1", ""};
  mini.run.outcomes[1] = {Kind::kFailed, "train_step 1", "a gradient is NaN"};
  return mini;
}

TEST(MustFail, TheRankThatHasTheNanStopsBeforeItSends) {
  const MiniRun mini = Stopped(0);
  const CheckResult result = CheckMustFail(mini.run);
  EXPECT_EQ(Guarded(mini.run), "");
  EXPECT_TRUE(result.judged.contains("FS-26"));
  for (const Finding& finding : result.findings) EXPECT_NE(finding.requirement, "GE-26");
  for (const NotCheckable& row : result.not_checkable)
    EXPECT_NE(row.kind, NotCheckable::Kind::kMissing) << row.requirement << ": " << row.why;
}

TEST(MustFail, NobodyStops) {
  EXPECT_NE(Guarded(Asked().run).find("nobody stops"), std::string::npos);
}

TEST(MustFail, TheNanIsSentBefore) {
  EXPECT_NE(Guarded(Stopped(2).run).find("a NaN is sent"), std::string::npos);
}

// Rank 0 has not joined: only the label of the reduction says what it carries.
TEST(MustFail, AReductionThatNobodyJoins) {
  MiniRun mini = Stopped(0);
  MiniRun sent = Stopped(1);
  mini.run.traces[1] = sent.run.traces[1];
  std::vector<Event>& events = mini.run.traces[1].events;
  const auto last = std::find_if(events.rbegin(), events.rend(), [](const Event& event) {
    return event.kind == EventKind::kCollective;
  });
  last->purpose = SPF_FOR_GRAD;
  EXPECT_NE(Guarded(mini.run).find("a NaN is sent"), std::string::npos);
  last->purpose = SPF_FOR_OTHER;
  last->count = 4096;
  const CheckResult unlabelled = CheckMustFail(mini.run);
  EXPECT_TRUE(NotCheckableIn(unlabelled).contains("FS-26")) << "what it carries is not known";
  EXPECT_FALSE(unlabelled.judged.contains("FS-26"));
}

TEST(MustFail, AnotherRankStops) {
  MiniRun mini = Stopped(0);
  std::swap(mini.run.outcomes[0], mini.run.outcomes[1]);
  EXPECT_NE(Guarded(mini.run).find("whose own gradients are finite"), std::string::npos);
}

TEST(MustFail, AnotherStepFails) {
  MiniRun mini = Stopped(0);
  mini.run.outcomes[1].call = "train_step 0";
  EXPECT_NE(Guarded(mini.run).find("nobody stops"), std::string::npos);
}

TEST(MustFail, ARankThatDiesBesideIsNoPartOfIt) {
  MiniRun mini = Stopped(0);
  mini.run.outcomes[0] = {Kind::kDied, "train_step 1", "ended by SIGSEGV"};
  const CheckResult result = CheckMustFail(mini.run);
  EXPECT_TRUE(std::any_of(result.findings.begin(), result.findings.end(),
                          [](const Finding& finding) { return finding.requirement == "GE-26"; }));
}

TEST(MustFail, ItFailsWithoutAWord) {
  MiniRun mini = Stopped(0);
  mini.run.outcomes[1].reason = "";
  EXPECT_NE(Guarded(mini.run).find("without a word"), std::string::npos);
}

TEST(MustFail, HowTheRanksEndedIsNotKnown) {
  MiniRun mini = Stopped(0);
  mini.run.outcomes.clear();
  const CheckResult result = CheckMustFail(mini.run);
  EXPECT_TRUE(NotCheckableIn(result).contains("FS-26"));
  EXPECT_TRUE(result.judged.empty());
}

}  // namespace
}  // namespace shardproof
