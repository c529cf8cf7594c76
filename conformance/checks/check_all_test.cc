#include "conformance/checks/check_all.h"

#include <gtest/gtest.h>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/completeness.h"
#include "conformance/checks/ended_early.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

std::string WhyNot(const CheckResult& result, const std::string& requirement) {
  for (const NotCheckable& one : result.not_checkable) {
    if (one.requirement == requirement) return one.why;
  }
  return "";
}

TEST(CheckAll, AGoodRunIsJudgedByEveryFamily) {
  const MiniRun mini = RunMini(MiniCase(2));
  const CheckResult result = CheckAll(mini.run);
  for (const char* id : {"PG-02", "FS-01", "FS-02", "FS-05", "FS-06", "GE-24", "GE-03"}) {
    EXPECT_TRUE(result.judged.contains(id)) << id;
  }
}

TEST(CheckAll, ForeignTracesGetTheCaseFreeChecks) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.spec = nullptr;
  mini.run.oracles.clear();
  mini.run.outcomes.clear();
  const CheckResult result = CheckAll(mini.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("FS-33"));
  EXPECT_EQ(WhyNot(result, "FS-01"), "the traces come without a case");
}

TEST(EarlyEnd, IsExplainedByABrokenMustAndNotByABrokenShould) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.outcomes.assign(2, {EngineOutcome::Kind::kAborted, "train_step 1", ""});
  const Analysis analysis(mini.run);
  for (const auto& [id, found] : {std::pair("GE-12", "GE-12 GE-26"), std::pair("GE-01", "GE-01")}) {
    CheckResult result;
    result.findings.emplace_back().requirement = id;
    JudgeEarlyEnd(analysis, result);
    EXPECT_EQ(FoundIn(result), found);
  }
}

TEST(CheckAll, TracesOfAnotherCaseAreNotJudgedByIt) {
  MiniRun mini = RunMini(MiniCase(2));
  for (Event& event : mini.run.traces[1].events) {
    if (event.kind == EventKind::kInit) event.id = 4711;
  }
  const CheckResult result = CheckAll(mini.run);
  EXPECT_NE(WhyNot(result, "FS-01").find("names parameter 4711"), std::string::npos)
      << WhyNot(result, "FS-01");
}

// "GE-18 GE-11<GE-18": requirements in order, each with what it follows from.
std::string CausesIn(const CheckResult& result) {
  std::string text;
  for (const Finding& finding : result.findings) {
    text += (text.empty() ? "" : " ") + finding.requirement;
    if (finding.follows >= 0) text += "<" + result.findings[size_t(finding.follows)].requirement;
  }
  return text;
}

// On another stream than the free it is a race too: one mistake.
TEST(CheckAll, AUseAfterTheFreeIsOneMistake) {
  for (const bool freed : {true, false}) {
    TraceBuilder t(0, 1);
    const int a = t.Stream("a"), b = t.Stream("b"), block = t.Alloc(a, 64);
    t.StreamSync(a);
    if (freed) t.Free(a, block);
    t.Launch(b, SPF_K_FILL, {Writes(block, 0, 64)});
    if (!freed) t.Free(a, block);
    shardproof::Run run;
    run.traces.push_back(t.Done());
    EXPECT_EQ(CausesIn(CheckAll(run)), freed ? "GE-18 GE-11<GE-18" : "GE-11");
  }
}

// Bad rows of a trace with a case: found or not judged, and no other check stops.
TEST(CheckAll, WorkOutsideOfEntryCallsIsNoTrouble) {
  MiniRun mini = RunMini(MiniCase(2));
  for (Event& event : mini.run.traces[1].events) {
    if (event.kind == EventKind::kCompute || event.kind == EventKind::kCollective) event.call = -1;
  }
  EXPECT_TRUE(CheckAll(mini.run).judged.contains("FS-02"));
}

TEST(CheckAll, CallsBeyondTheScriptAreOfAnotherCase) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.traces[1].events.back().call = 4711;
  EXPECT_NE(WhyNot(CheckAll(mini.run), "FS-01").find("names entry call 4711"), std::string::npos);
}

TEST(CheckAll, ParametersReadThatTheCaseDoesNotHaveAreOfAnotherCase) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.traces[1].reads[0].param = 4711;
  EXPECT_NE(WhyNot(CheckAll(mini.run), "FS-01").find("names parameter 4711 as read"),
            std::string::npos);
}

TEST(CheckAll, RangesOfAnyLengthAreNoTrouble) {
  for (const int64_t length : {int64_t{1}, int64_t{1} << 20}) {
    MiniRun mini = RunMini(MiniCase(2));
    for (Range& range : mini.run.traces[1].ranges) range.length = length;
    const CheckResult result = CheckAll(mini.run);
    EXPECT_NE(FoundIn(result).find("GE-18"), std::string::npos) << FoundIn(result);
    EXPECT_TRUE(result.judged.contains("FS-02"));
  }
}

TEST(CheckAll, FewerTracesThanRanksAreNotJudged) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.traces.pop_back();
  mini.run.outcomes.pop_back();
  EXPECT_EQ(WhyNot(CheckAll(mini.run), "FS-01"), "there are 1 traces for a world of 2");
}

TEST(CheckAll, NoTracesAreNoVerdict) {
  const CheckResult result = CheckAll(shardproof::Run{});
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_FALSE(result.not_checkable.empty());
}

using Kind = EngineOutcome::Kind;

TEST(CheckAll, AnEarlyEndWithoutAReasonIsAFinding) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.outcomes[1] = {Kind::kAborted, "train_step 1", ""};
  const CheckResult result = CheckAll(mini.run);
  ASSERT_EQ(FoundIn(result), "GE-26");
  EXPECT_EQ(result.findings[0].rank, 1);
  EXPECT_EQ(result.findings[0].operation, "train_step 1");
}

TEST(CheckAll, AnEarlyEndIsJudgedOnlyWhereSomethingWasFound) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.outcomes[0] = {Kind::kAborted, "train_step 1", "rank 1 ended"};
  mini.run.outcomes[1] = {Kind::kDied, "train_step 1", "signal 11"};
  const CheckResult result = CheckAll(mini.run);
  EXPECT_EQ(result.judged, std::set<std::string>{"GE-26"});
  EXPECT_EQ(WhyNot(result, "FS-01"), "the run ended early: rank 1, train_step 1, died: signal 11");
}

TEST(CheckAll, AForeignTraceThatWasAbortedIsAFinding) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.outcomes.clear();
  mini.run.traces[1].end = TraceEnd::kAborted;
  const CheckResult result = CheckAll(mini.run);
  EXPECT_EQ(FoundIn(result), "GE-26");
  EXPECT_EQ(result.judged, std::set<std::string>{"GE-26"});
}

TEST(CheckAll, ARejectedIllegalCaseIsJudged) {
  MiniRun mini = RunMini(MiniCase(2));
  Case spec = *mini.run.spec;
  spec.illegal = "not divisible";
  mini.run.spec = &spec;
  for (Trace& trace : mini.run.traces) {
    TraceBuilder t(trace.rank, 2);
    t.CallBegin("create");
    t.Explain("because");
    t.CallEnd("create", -1, SPF_REJECTED);
    trace = t.Done();
  }
  for (EngineOutcome& outcome : mini.run.outcomes) outcome = {Kind::kRejected, "create", "because"};
  const CheckResult result = CheckAll(mini.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("GE-20"));
}

TEST(CheckAll, NothingIsBothJudgedAndNotCheckable) {
  MiniFaults faults;
  faults.marks = false;
  const MiniRun mini = RunMini(MiniCase(2), faults);
  const CheckResult result = CheckAll(mini.run);
  for (const NotCheckable& one : result.not_checkable)
    EXPECT_FALSE(result.judged.contains(one.requirement));
}

// One step shows no growth of what is pinned: a run with one need not judge it.
TEST(ShownByEveryRun, HasPinnedMemoryWhereAStepIsRepeated) {
  const auto shown = [](const std::string& script) {
    const MiniRun mini = RunMini(MiniCase(2, [&](InstanceSpec& spec) { spec.script = script; }));
    return ShownByEveryRun(Analysis(mini.run)).contains("BU-03");
  };
  for (const char* script : {"t", "te", "e"}) EXPECT_FALSE(shown(script)) << script;
  for (const char* script : {"tt", "tee"}) EXPECT_TRUE(shown(script)) << script;
}

}  // namespace
}  // namespace shardproof
