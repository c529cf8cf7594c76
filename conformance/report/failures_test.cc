// What is told of a run in which much fails?
#include "conformance/report/failures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "conformance/report/console.h"
#include "conformance/report/files.h"
#include "conformance/report/reports_for_test.h"

namespace shardproof {
namespace {

// Fails by one requirement of its own, and by FS-05.
CaseReport FailingBy(const std::string& id, const std::string& requirement) {
  CaseReport c = Failing(id);
  c.findings.push_back(c.findings[0]);
  c.findings.back().finding.requirement = requirement;
  c.findings.back().finding.event = 7;
  return c;
}
TEST(Console, ABrokenEngineFitsOnAFewScreens) {
  std::ostringstream out;
  Console console(out, {}, false, 1500, SentenceOf);
  RunReport report = Report({});
  for (int i = 0; i < 1500; ++i) {
    report.cases.push_back(
        FailingBy("w" + std::to_string(i) + ".zero3.x", "R-" + std::to_string(i % 40)));
    report.cases.back().not_checkable.push_back({"FS-09", "why " + std::to_string(i)});
    report.cases.back().shrink = "shardproof shrink --case w" + std::to_string(i);
    console.CaseDone(report.cases.back());
    CaseReport unsupported = Passing("u" + std::to_string(i));
    unsupported.status = Status::kUnsupported;
    unsupported.reason = "reason " + std::to_string(i);
    report.cases.push_back(unsupported);
    report.problems.push_back("problem " + std::to_string(i));
  }
  report.cases.push_back(Failing("w2.ddp"));
  report.cases.back().shrink = "shardproof shrink --case w2.ddp";
  console.CaseDone(report.cases.back());
  console.Finish(report);
  const std::string text = out.str();
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 140) << text;
  EXPECT_NE(text.find("  FS-05  1501 cases  w2.ddp\n"
                      "      rank 3, step 1, reduce_scatter of grad on dp_cp: expected one "
                      "reduction, seen two\n"
                      "      shardproof replay --case w2.ddp\n"
                      "      shardproof shrink --case w2.ddp\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("R-39 (37 cases)"), std::string::npos) << text;
  EXPECT_NE(text.find("and 1485 more problems"), std::string::npos) << text;
  EXPECT_NE(text.find("and 1495 more reasons of unsupported cases"), std::string::npos) << text;
  EXPECT_LE(SummaryMarkdown(report, SentenceOf).size(), 200u * 1000);
}
TEST(Console, EveryCaseThatFailedIsNamed) {
  RunReport report = Report({FailingBy("w2.ddp", "GE-05"), FailingBy("w2.zero1", "GE-05"),
                             Failing("w2.zero2.k2"), Passing("w1.ddp")});
  for (const bool quiet : {false, true}) {
    std::ostringstream out;
    Console console(out, {}, false, 4, SentenceOf, false, quiet);
    for (const CaseReport& c : report.cases) console.CaseDone(c);
    console.Finish(report);
    EXPECT_NE(
        out.str().find("  also fail  w2.zero1  as w2.ddp\n  also fail  w2.zero2.k2  as w2.ddp\n"),
        std::string::npos)
        << out.str();
  }
}
TEST(Console, OfHundredsThatFailedAlikeAFewAreNamedAndTheRestCounted) {
  RunReport report = Report({Failing("w2.ddp")});
  for (int i = 0; i < 300; ++i) report.cases.push_back(Failing("w" + std::to_string(i) + ".ddp.x"));
  for (const bool all : {false, true}) {
    std::ostringstream out;
    Console console(out, {}, false, 301, SentenceOf, all, true);
    console.Finish(report);
    EXPECT_EQ(Times("  as w2.ddp\n", out.str()), all ? 300u : kAlikeAtEnd) << out.str();
    EXPECT_EQ(Times("\nand 280 more cases not passed (--all names each)\n", out.str()),
              all ? 0u : 1u);
  }
}
TEST(Console, VerboseAndAllTellEveryCase) {
  for (const bool all : {false, true}) {
    std::ostringstream out;
    Console console(out, {}, !all, 60, SentenceOf, all);
    for (int i = 0; i < 60; ++i) console.CaseDone(Failing("w" + std::to_string(i)));
    for (int i = 0; i < 60; ++i)
      EXPECT_NE(out.str().find("fail  w" + std::to_string(i) + "\n"), std::string::npos) << i;
  }
}
TEST(Console, ASuiteErrorIsToldOnceByItsReason) {
  std::ostringstream out;
  Console console(out, {}, false, 9, SentenceOf);
  RunReport report = Report({Passing("a"), Passing("b"), Passing("c.d")});
  for (CaseReport& c : report.cases) {
    c.status = Status::kSuiteError;
    c.reason = "no memory";
    console.CaseDone(c);
  }
  console.Finish(report);
  EXPECT_NE(out.str().find("suite-error  a  (no memory)\n"), std::string::npos) << out.str();
  EXPECT_EQ(Times("no memory", out.str()), 2u) << out.str();  // again at the end
  EXPECT_NE(out.str().find("  suite-error  3 cases  a\n"), std::string::npos) << out.str();
}

TEST(Failures, TheSmallestCaseIsToldAndWarningsAreNone) {
  RunReport report = Report({Failing("w4.zero3.k2"), Failing("w8.zero3"), Failing("w4.zero3"),
                             FailingBy("w4.zero3.k2.odd", "GE-05"), Passing("w1")});
  report.cases.push_back(FailingBy("w1", "GE-30"));
  report.cases.back().findings[0].finding.requirement = "GE-05";
  report.cases.back().findings[1].warning = true;
  const std::vector<Failure> failures = FailuresOf(report);
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(failures[0].breaks, "FS-05");
  EXPECT_EQ(failures[0].cases, (std::vector<size_t>{2, 1, 0, 3}));
  EXPECT_EQ(failures[0].smallest->id, "w4.zero3");
  EXPECT_EQ(failures[1].breaks, "GE-05");
  EXPECT_EQ(failures[1].smallest->id, "w1");
}
TEST(Failures, OfOneCaseTheCauseComesFirst) {
  RunReport report = Report({FailingBy("w2.ddp", "EP-01")});
  std::vector<ToldFinding> told = TellFindings(report.cases[0], false);
  ASSERT_EQ(told.size(), 2u);
  std::vector<Failure> failures = FailuresOf(report);
  ASSERT_EQ(failures.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(failures[i].breaks, told[i].finding().requirement);
  EXPECT_GT(failures[0].breaks, failures[1].breaks);  // else the test shows nothing
}

TEST(Summary, OneSectionForEachRequirementWithItsSmallestCase) {
  RunReport report = Report({});
  for (int i = 0; i < 300; ++i)
    report.cases.push_back(Failing("w" + std::to_string(100 + i) + ".zero3"));
  report.cases.push_back(Failing("w2.ddp"));
  for (CaseReport& c : report.cases) c.findings[0].finding.message = std::string(10'000, 'x');
  const std::string text = SummaryMarkdown(report, SentenceOf);
  EXPECT_LE(text.size(), 10'000u);
  EXPECT_NE(text.find("| FS-05 | 301 | w2.ddp |"), std::string::npos) << text;
  EXPECT_EQ(Times("\n## ", text), 1u);
  EXPECT_NE(text.find("- and 280 more"), std::string::npos) << text;
}
TEST(Summary, HasABoundWhateverIsReported) {
  RunReport report = Report({});
  for (int i = 0; i < 200; ++i) {
    report.cases.push_back(FailingBy("w2", "\x1b" + std::to_string(i)));
    report.facts.push_back(std::string(10'000, '\x1b'));
    report.problems.push_back(std::string(10'000, '*'));
  }
  EXPECT_LE(SummaryMarkdown(report, SentenceOf).size(), 200u * 1000);
}

}  // namespace
}  // namespace shardproof
