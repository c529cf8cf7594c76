#include "conformance/runner/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/runner/reporting.h"
#include "conformance/runner/sim_run.h"
#include "conformance/runner/verdict_io.h"

namespace shardproof {
namespace {

using ::testing::HasSubstr;

using RunOfACase = Run;  // testing::Test has a Run of its own

class JudgeTest : public testing::Test {
 protected:
  // The relation to the same case under another timing, and a run that gave the same.
  Partner AnotherTiming() const {
    Partner partner = PartnersOf(case_).front();
    EXPECT_TRUE(partner.new_timing);
    return partner;
  }

  const Case case_ = ParseId("w2.zero3");
  const Plugin plugin_{"builtin:reference"};
  const RunOfACase run_ = RunOnSim(case_, MakeModels(case_), plugin_, {}).run;
};

std::string WhyNotAsked(const Verdict& verdict, const std::string& requirement) {
  for (const NotCheckable& row : verdict.result.not_checkable) {
    if (row.requirement == requirement && row.kind == NotCheckable::Kind::kNotAsked) return row.why;
  }
  return "";
}

void ChangeResults(Run* run) {
  for (double& value : run->traces[1].values) value += 1;
}

TEST_F(JudgeTest, TheSameRunHasTheSameVerdictAgain) {
  const Verdict first = JudgeRun(case_, run_), second = JudgeRun(case_, run_);
  EXPECT_EQ(first.outcome, Outcome::kPass);
  EXPECT_EQ(second.outcome, Outcome::kPass);
  EXPECT_EQ(first.result.judged, second.result.judged);
  EXPECT_EQ(first.result.judged.count("FS-15"), 1u) << "with the oracle's values";
}

TEST_F(JudgeTest, TheLimitOfMemoryIsARunsOwn) {
  SimRunOptions options;
  options.rank.most_bytes = 64;  // step times on a GPU need more than a case has, not less
  const RunData run = RunOnSim(case_, MakeModels(case_), plugin_, options);
  EXPECT_NE(run.run.outcomes[0].kind, EngineOutcome::Kind::kOk);
  EXPECT_THAT(run.run.outcomes[0].reason, HasSubstr("exceed the case's device memory of 64"));
  EXPECT_EQ(run_.outcomes[0].kind, EngineOutcome::Kind::kOk);
}

// Who watches the run sees the simulated devices work, also while no host calls anything.
TEST_F(JudgeTest, DeviceWorkIsProgress) {
  Progress progress;
  SimRunOptions options;
  options.rank.progress = &progress;
  const RunData data = RunOnSim(case_, MakeModels(case_), plugin_, options);
  size_t events = 0;  // at least one of each host call that counts
  for (const Trace& trace : data.run.traces) events += trace.events.size();
  EXPECT_GT(progress.beats.load(), events);
}

TEST_F(JudgeTest, APartnerThatAgreesLeavesAPass) {
  const Partner partner = AnotherTiming();
  const Verdict verdict = JudgeWithPartners(JudgeRun(case_, run_), run_, {{&partner, run_}});
  EXPECT_EQ(verdict.outcome, Outcome::kPass);
  EXPECT_EQ(verdict.result.judged.count("GE-32"), 1u);
}

TEST_F(JudgeTest, APartnerWithOtherResultsIsAFailure) {
  const Partner partner = AnotherTiming();
  RunOfACase other = run_;
  ChangeResults(&other);
  const Verdict verdict = JudgeWithPartners(JudgeRun(case_, run_), run_, {{&partner, other}});
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  ASSERT_FALSE(verdict.result.findings.empty());
  EXPECT_EQ(verdict.result.findings.front().requirement, "GE-32");
  EXPECT_THAT(verdict.result.findings.front().message,
              HasSubstr("; the other run is the same case run again: "));
  EXPECT_TRUE(verdict.partners.empty()) << "it has no other case";
}

Partner OtherStrategy(const Case& c) {
  for (Partner& partner : PartnersOf(c)) {
    if (partner.requirement == "FS-41") return partner;
  }
  ADD_FAILURE() << "no partner with another strategy";
  return {};
}

// The oracle knows which of the two it is.
TEST_F(JudgeTest, OfTwoRunsTheOneThatIsWrongIsNamed) {
  const Partner partner = OtherStrategy(case_);
  RunOfACase other = RunOnSim(partner.spec, MakeModels(partner.spec), plugin_, {}).run;
  ChangeResults(&other);
  const Verdict verdict = JudgeWithPartners(JudgeRun(case_, run_), run_, {{&partner, other}});
  ASSERT_FALSE(verdict.result.findings.empty());
  const Finding& finding = verdict.result.findings.front();
  const std::string id = Id(partner.spec);
  EXPECT_NE(id, Id(case_));
  EXPECT_THAT(finding.message, HasSubstr("; the other run is " + id + ", this case with strategy"));
  EXPECT_THAT(finding.message, HasSubstr("the other one is wrong: it breaks "));
  EXPECT_THAT(finding.message, HasSubstr(", and its results are not the oracle's"));
  EXPECT_THAT(finding.expected, HasSubstr(", as in this case"));
  EXPECT_THAT(finding.seen, HasSubstr(", in " + id));
  EXPECT_EQ(verdict.partners.at(0), id);
}

// Without the partner's case there is nothing to judge it by.
TEST_F(JudgeTest, WhereNothingTellsWhichIsWrongOneOfTheTwoIs) {
  const Partner partner = OtherStrategy(case_);
  RunOfACase mine = run_;
  ChangeResults(&mine);
  const RunOfACase other = RunOnSim(partner.spec, MakeModels(partner.spec), plugin_, {}).run;
  const Verdict verdict = JudgeWithPartners(JudgeRun(case_, run_), mine, {{&partner, other}});
  ASSERT_FALSE(verdict.result.findings.empty());
  EXPECT_THAT(verdict.result.findings.front().message, HasSubstr("one of the two is wrong"));
}

TEST_F(JudgeTest, TheReportSaysHowToRunTheOtherCase) {
  const Partner partner = OtherStrategy(case_);
  RunOfACase other = RunOnSim(partner.spec, MakeModels(partner.spec), plugin_, {}).run;
  ChangeResults(&other);
  const CaseReport report = ReportOf(
      case_, JudgeWithPartners(JudgeRun(case_, run_), run_, {{&partner, other}}), Options{});
  ASSERT_FALSE(report.findings.empty());
  EXPECT_THAT(report.findings.front().partner, HasSubstr(" --case " + Id(partner.spec)));
}

TEST_F(JudgeTest, APartnerThatEndsEarlyIsAFailure) {
  const Partner partner = AnotherTiming();
  RunOfACase other = run_;
  other.outcomes[1] = {EngineOutcome::Kind::kFailed, "create", "train_step answered 99"};
  const Verdict verdict = JudgeWithPartners(JudgeRun(case_, run_), run_, {{&partner, other}});
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  ASSERT_FALSE(verdict.result.findings.empty());
  EXPECT_EQ(verdict.result.findings.front().requirement, "GE-32");
  EXPECT_EQ(verdict.result.findings.front().rank, 1);
  EXPECT_EQ(verdict.result.findings.front().seen, "failed: train_step answered 99");
}

TEST_F(JudgeTest, APartnerThatTheEngineDoesNotSupportSaysNothing) {
  const Partner partner = AnotherTiming();
  RunOfACase other = run_;
  ChangeResults(&other);
  for (EngineOutcome& outcome : other.outcomes) outcome.kind = EngineOutcome::Kind::kUnsupported;
  const Verdict verdict = JudgeWithPartners(JudgeRun(case_, run_), run_, {{&partner, other}});
  EXPECT_EQ(verdict.outcome, Outcome::kPass);
  EXPECT_EQ(WhyNotAsked(verdict, partner.requirement),
            "the engine does not support the case " + partner.why);
}

TEST_F(JudgeTest, APartnerThatDoesNotComeToItsEndIsAFailure) {
  const Partner partner = AnotherTiming();
  RunOfACase other = run_;
  for (Trace& trace : other.traces) trace.events.clear();
  other.outcomes[1] = {EngineOutcome::Kind::kDied, "train_step 0", "signal 11"};
  const Verdict verdict = JudgeWithPartners(JudgeRun(case_, run_), run_, {{&partner, other}});
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  ASSERT_EQ(verdict.result.findings.size(), 1u);
  EXPECT_EQ(verdict.result.findings[0].rank, 1);
  EXPECT_EQ(verdict.result.findings[0].seen, "died: signal 11");
}

TEST_F(JudgeTest, WhatTakesASecondRunIsNotAskedWithoutOne) {
  ASSERT_FALSE(PartnersToRun(case_).empty());
  const std::string id = PartnersToRun(case_).front().requirement;
  EXPECT_THAT(WhyNotAsked(JudgeRun(case_, run_), id), HasSubstr("it takes a second run"));
}

TEST_F(JudgeTest, WithoutResultsTheVerdictIsPartial) {
  RunOfACase run = run_;
  for (Trace& trace : run.traces) trace.provides.results = false;
  const Verdict verdict = JudgeRun(case_, run);
  EXPECT_EQ(verdict.outcome, Outcome::kPartial);
  EXPECT_EQ(verdict.result.judged.count("FS-15"), 0u);
  EXPECT_EQ(UnpackVerdict(PackVerdict(verdict)).outcome, Outcome::kPartial);
  EXPECT_EQ(UnpackVerdict(PackVerdict(verdict)).result.not_checkable.back().kind,
            NotCheckable::Kind::kNotAsked)
      << "kinds travel between processes";
}

}  // namespace
}  // namespace shardproof
