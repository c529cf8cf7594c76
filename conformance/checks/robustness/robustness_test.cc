#include "conformance/checks/robustness/robustness.h"

#include <gtest/gtest.h>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/robustness/answers.h"
#include "conformance/checks/robustness/cut_save.h"
#include "conformance/checks/robustness/left_behind.h"
#include "conformance/checks/robustness/starved.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/requirements/registry.h"

namespace shardproof {
namespace {

using Kind = EngineOutcome::Kind;

// A run in which every rank ends in create, with this answer.
struct Answered {
  explicit Answered(Kind kind, const std::string& illegal = "") {
    spec.world = 2;
    Derive(spec);
    spec.illegal = illegal;
    run.spec = &spec;
    for (int rank = 0; rank < 2; ++rank) {
      TraceBuilder t(rank, 2);
      t.CallBegin("create");
      t.Knob("microbatches", true);
      t.Explain("because");
      t.CallEnd("create", -1, kind == Kind::kOk ? SPF_OK : SPF_REJECTED);
      run.traces.push_back(t.Done());
      run.outcomes.push_back({kind, "create", "because"});
    }
  }
  std::string Found() const { return FoundIn(CheckRobustness(run)); }
  Case spec;
  shardproof::Run run;
};

TEST(Robustness, AnIllegalCaseThatAllRanksReject) {
  EXPECT_EQ(Answered(Kind::kRejected, "not divisible").Found(), "");
}

TEST(Robustness, AnIllegalCaseThatRuns) {
  EXPECT_EQ(Answered(Kind::kOk, "not divisible").Found(), "GE-20");
}

TEST(Robustness, AnIllegalCaseThatIsRejectedTooLate) {
  Answered answered(Kind::kRejected, "not divisible");
  answered.run.outcomes[1].call = "train_step 0";
  EXPECT_EQ(answered.Found(), "GE-20");
}

TEST(Robustness, WhatStaysBehindIsNamed) {
  Answered answered(Kind::kRejected, "not divisible");
  answered.run.left_behind = {"", ""};
  EXPECT_EQ(answered.Found(), "");
  answered.run.left_behind[1] = "a process (sleep) still ran";
  EXPECT_EQ(answered.Found(), "GE-37");
  EXPECT_EQ(JudgeLeftBehind(answered.run).findings.at(0).rank, 1);
  answered.run.left_behind = {"the limit RLIMIT_CPU is 5"};  // of a process of all ranks
  EXPECT_EQ(JudgeLeftBehind(answered.run).findings.at(0).rank, -1);
  answered.run.left_behind.clear();
  EXPECT_TRUE(JudgeLeftBehind(answered.run).judged.empty());
}

// A run whose ranks load what a cut save left; each answers so.
struct CutSaveLoaded {
  explicit CutSaveLoaded(const std::vector<Kind>& answers) {
    for (size_t i = 0; i < answers.size(); ++i) {
      const auto rank = static_cast<int32_t>(i);
      TraceBuilder t(rank, static_cast<int32_t>(answers.size()));
      t.CallBegin("create");
      t.CallEnd("create", -1, SPF_OK);
      t.CallBegin("load");
      if (answers[i] != Kind::kDied)
        t.CallEnd("load", -1, answers[i] == Kind::kOk ? SPF_OK : SPF_FAILED);
      run.traces.push_back(t.Done());
      const bool ok = answers[i] == Kind::kOk;
      run.outcomes.push_back({answers[i], ok ? "" : "load", ok ? "" : "no index"});
    }
  }
  std::string Problem(bool complete = false) const {
    const CheckResult result = JudgeCutSave(run, "before a rename", complete);
    return FoundIn(result) == "" ? "" : FoundIn(result) + ": " + result.findings.at(0).message;
  }
  shardproof::Run run;
};

TEST(Robustness, ACutSaveIsTakenOrRefusedByAll) {
  const CutSaveLoaded taken({Kind::kOk, Kind::kOk}), refused({Kind::kFailed, Kind::kAborted});
  EXPECT_EQ(AnswerToCutSave(taken.run), LoadAnswer::kTaken);
  EXPECT_EQ(AnswerToCutSave(refused.run), LoadAnswer::kRefused);
  EXPECT_EQ(taken.Problem() + refused.Problem() + taken.Problem(true), "");
}

TEST(Robustness, ACutSaveThatOneRankTakes) {
  const CutSaveLoaded split({Kind::kOk, Kind::kFailed});
  EXPECT_EQ(AnswerToCutSave(split.run), LoadAnswer::kNeither);
  EXPECT_NE(split.Problem().find("GE-39: one rank refuses"), std::string::npos);
  EXPECT_EQ(JudgeCutSave(split.run, "", false).findings.at(0).rank, 0);
}

TEST(Robustness, ACutSaveThatEndsItsLoader) {
  for (const Kind end : {Kind::kDied, Kind::kHung}) {
    EXPECT_NE(CutSaveLoaded({Kind::kFailed, end}).Problem().find("neither loaded nor refused"),
              std::string::npos);
  }
}

TEST(Robustness, ACompleteSaveThatIsRefused) {
  const CutSaveLoaded refused({Kind::kFailed, Kind::kFailed});
  EXPECT_NE(refused.Problem(true).find("not complete"), std::string::npos);
  CutSaveLoaded silent({Kind::kFailed, Kind::kFailed});
  for (EngineOutcome& outcome : silent.run.outcomes) outcome.reason = "";
  EXPECT_NE(silent.Problem().find("without a word"), std::string::npos);
  CutSaveLoaded ended_by_others({Kind::kAborted, Kind::kAborted});
  EXPECT_NE(ended_by_others.Problem(), "") << "nobody said why";
}

TEST(Robustness, WhatLoadsFromACutSaveIsJudged) {
  Finding found;
  found.requirement = "FS-23";
  found.message = "published value differs";
  const Finding wrong = LoadedWrong(found, "before a rename", false);
  EXPECT_EQ(wrong.requirement, "GE-39");
  EXPECT_NE(wrong.message.find("FS-23: published value differs"), std::string::npos);
}

// Rank 1 had no memory for an allocation in train_step 0; each rank ends so.
struct WithoutMemory {
  explicit WithoutMemory(const std::vector<Kind>& ends, int32_t answer = SPF_FAILED) {
    for (size_t i = 0; i < ends.size(); ++i) {
      TraceBuilder t(static_cast<int32_t>(i), static_cast<int32_t>(ends.size()));
      t.CallBegin("train_step", 0);
      if (ends[i] != Kind::kDied)
        t.CallEnd("train_step", 0, ends[i] == Kind::kOk ? int32_t{SPF_OK} : answer);
      run.traces.push_back(t.Done());
      run.outcomes.push_back({ends[i], ends[i] == Kind::kOk ? "" : "train_step 0", ""});
    }
    Event refused;
    refused.kind = EventKind::kNoMemory;
    run.traces[1].events.insert(run.traces[1].events.begin() + 1, refused);
  }
  std::string Problem() const {
    const CheckResult result = JudgeStarved(run, 1, "8 bytes");
    EXPECT_TRUE(result.judged.contains("GE-40"));
    return FoundIn(result) == "" ? "" : FoundIn(result) + ": " + result.findings.at(0).message;
  }
  shardproof::Run run;
};

TEST(Robustness, ARankWithoutMemoryEndsTheRunOrGoesOn) {
  const WithoutMemory ended({Kind::kAborted, Kind::kFailed}, SPF_NO_MEMORY);
  EXPECT_EQ(ended.Problem(), "");
  EXPECT_EQ(EndOfStarved(ended.run, 1), StarvedEnd::kEnded);
  EXPECT_TRUE(WasStarved(ended.run, 1));
  EXPECT_FALSE(WasStarved(ended.run, 0));
  const WithoutMemory went_on({Kind::kOk, Kind::kOk});
  EXPECT_EQ(went_on.Problem(), "");
  EXPECT_EQ(EndOfStarved(went_on.run, 1), StarvedEnd::kWentOn);
  WithoutMemory speaks({Kind::kAborted, Kind::kFailed});
  EXPECT_NE(speaks.Problem().find("GE-40: a rank without memory fails without a word"),
            std::string::npos);
  speaks.run.outcomes[1].reason = "no room for the gradients of layer 1";
  EXPECT_EQ(speaks.Problem(), "");
}

TEST(Robustness, ARankWithoutMemoryThatBringsOthersDown) {
  for (const auto& [ends, words] : std::vector<std::pair<std::vector<Kind>, std::string>>{
           {{Kind::kAborted, Kind::kDied}, "takes a process with it"},
           {{Kind::kHung, Kind::kOk}, "leaves others waiting"},
           {{Kind::kAborted, Kind::kRefused}, "is not looked at"},
           {{Kind::kAborted, Kind::kRejected}, "no property of the configuration"},
           {{Kind::kFailed, Kind::kOk}, "answers nothing"}}) {
    EXPECT_NE(WithoutMemory(ends).Problem().find(words), std::string::npos) << words;
  }
}

TEST(Robustness, WhatGoesOnWithoutMemoryIsJudged) {
  Finding found;
  found.requirement = "FS-23";
  found.message = "published value differs";
  const Finding wrong = WentOnWrong(found, "8 bytes");
  EXPECT_EQ(wrong.requirement, "GE-40");
  EXPECT_NE(wrong.message.find("FS-23: published value differs"), std::string::npos);
}

TEST(Robustness, AWrongTwinThatIsAccepted) {
  for (const Kind kind : {Kind::kRejected, Kind::kOk}) {
    Answered answered(kind, "wrong twin");
    answered.spec.instances[0].twin = GatherTwin::kPermuted;
    EXPECT_EQ(answered.Found(), kind == Kind::kOk ? "PG-16" : "");
  }
}

TEST(Robustness, ALegalCaseThatIsRejected) {
  EXPECT_EQ(Answered(Kind::kRejected).Found(), "GE-23");
}

TEST(Robustness, ARankThatAnswersDifferently) {
  Answered answered(Kind::kRejected, "not divisible");
  answered.run.traces[1] = Answered(Kind::kOk).run.traces[1];
  answered.run.outcomes[1].kind = Kind::kUnsupported;
  EXPECT_EQ(answered.Found(), "GE-24");
}

TEST(Robustness, ARankThatFailsWhereAnotherOneDeclinesIsNotSaidToRun) {
  Answered answered(Kind::kUnsupported, "no checkpoint of another world");
  answered.run.traces[1] = Answered(Kind::kOk).run.traces[1];
  answered.run.outcomes[1] = {Kind::kFailed, "load", "no file rank1.bin"};
  const CheckResult result = CheckRobustness(answered.run);
  const auto different =
      std::find_if(result.findings.begin(), result.findings.end(),
                   [](const Finding& finding) { return finding.requirement == "GE-24"; });
  ASSERT_NE(different, result.findings.end()) << FoundIn(result);
  EXPECT_EQ(different->seen, "failed: no file rank1.bin");
}

TEST(Robustness, ARejectionWithoutAWord) {
  Answered answered(Kind::kRejected, "not divisible");
  std::erase_if(answered.run.traces[0].events,
                [](const Event& event) { return event.kind == EventKind::kExplain; });
  EXPECT_EQ(answered.Found(), "GE-22");
}

TEST(Robustness, ARejectionAfterACollective) {
  Answered answered(Kind::kRejected, "not divisible");
  TraceBuilder t(0, 2);
  t.CallBegin("create");
  t.Explain("because");
  t.Collective(SPF_ALL_REDUCE, t.Group("world", {0, 1}), t.Stream("s"), 4);
  t.CallEnd("create", -1, SPF_REJECTED);
  answered.run.traces[0] = t.Done();
  EXPECT_EQ(answered.Found(), "GE-21");
}

TEST(Robustness, ARankThatDied) {
  Answered answered(Kind::kAborted);
  answered.run.outcomes[1] = {Kind::kDied, "train_step 3", "signal 11"};
  const CheckResult result = CheckRobustness(answered.run);
  ASSERT_EQ(FoundIn(result), "GE-26");
  EXPECT_EQ(result.findings[0].rank, 1);
  EXPECT_EQ(result.findings[0].seen, "died: signal 11");
}

TEST(Robustness, ARunThatHangs) { EXPECT_EQ(Answered(Kind::kHung).Found(), "GE-27"); }

TEST(Robustness, ARefusedCallNamesCallAndReason) {
  MiniRun mini = RunMini(MiniCase(2));
  TraceBuilder t(0, 2);
  t.CallBegin("create");
  t.Refused("mem_free", "block 3 is not live");
  mini.run.traces[0] = t.Done();
  const CheckResult result = CheckRobustness(mini.run);
  EXPECT_NE(FoundIn(result).find("GE-25"), std::string::npos);
  EXPECT_EQ(result.findings.back().requirement.substr(0, 3), "GE-");
}

// Of a refused call the trace says what it would have broken; older traces do not.
CheckResult RefusedOnRank0(Breaks breaks) {
  MiniRun mini = RunMini(MiniCase(2));
  Trace& trace = mini.run.traces[0];
  TraceBuilder t(0, 2);
  t.CallBegin("create");
  t.Refused("mem_free", "block 3 was freed before", breaks);
  t.CallEnd("create");
  Trace refused = t.Done();
  refused.provides = trace.provides;
  trace = std::move(refused);
  mini.run.outcomes.clear();
  return CheckRobustness(mini.run);
}

TEST(Robustness, ARefusedCallNamesWhatItWouldHaveBroken) {
  for (uint8_t breaks = 1; breaks < kBreakable.size(); ++breaks) {
    const std::string id(At(kBreakable, breaks));
    const CheckResult result = RefusedOnRank0(static_cast<Breaks>(breaks));
    const Finding *refusal = nullptr, *rule = nullptr;
    for (const Finding& finding : result.findings) {
      if (finding.requirement == "GE-25") refusal = &finding;
      if (finding.requirement == id) rule = &finding;
    }
    ASSERT_NE(refusal, nullptr) << id;
    ASSERT_NE(rule, nullptr) << id;
    EXPECT_LT(refusal, rule) << "the refusal comes first";
    EXPECT_EQ(rule->event, refusal->event);
    EXPECT_EQ(rule->seen, refusal->seen);
    EXPECT_TRUE(result.judged.contains(id)) << id;
    EXPECT_TRUE(Registry::Builtin().Find(id) != nullptr) << id;
  }
}

TEST(Robustness, ARefusedCallThatBreaksNothingElse) {
  const CheckResult result = RefusedOnRank0(Breaks::kNothing);
  EXPECT_NE(FoundIn(result).find("GE-25"), std::string::npos);
  for (const std::string_view id : kBreakable) {
    EXPECT_FALSE(result.judged.contains(std::string(id))) << id;
    EXPECT_TRUE(id.empty() || FoundIn(result).find(id) == std::string::npos) << id;
  }
}

TEST(Robustness, AGoodRunHasNoFinding) {
  const CheckResult result = CheckRobustness(RunMini(MiniCase(2)).run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("GE-28"));
}

TEST(Robustness, AnEngineThatDoesNotReadTheLearningRate) {
  MiniRun mini = RunMini(MiniCase(2));
  Trace& trace = mini.run.traces[1];
  std::erase_if(trace.events, [&](const Event& event) {
    return event.kind == EventKind::kKnob && trace.Text(event.text) == "lr";
  });
  EXPECT_EQ(FoundIn(CheckRobustness(mini.run)), "GE-28");
}

TEST(Robustness, AFeatureKnobThatCreateDidNotRead) {
  MiniRun mini = RunMini(MiniCase(2));
  EXPECT_TRUE(UnreadKnobs(*mini.spec, mini.run.traces[0], 0).empty());
  Trace& trace = mini.run.traces[0];
  std::erase_if(trace.events, [&](const Event& event) {
    return event.kind == EventKind::kKnob && trace.Text(event.text) == "strategy";
  });
  EXPECT_EQ(UnreadKnobs(*mini.spec, trace, 0), std::vector<std::string>{"strategy"});
}

TEST(Robustness, ForeignTracesWithoutOutcomes) {
  shardproof::Run run;
  run.traces.push_back(TraceBuilder(0, 1).Done());
  const CheckResult result = CheckRobustness(run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_FALSE(result.not_checkable.empty());
}

}  // namespace
}  // namespace shardproof
