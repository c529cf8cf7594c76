// Two reports, as they are read from files: what is better, what is worse, what cannot be compared.
#include "conformance/report/comparison.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "conformance/report/files.h"
#include "conformance/report/report_file.h"
#include "conformance/report/reports_for_test.h"

namespace shardproof {
namespace {

std::filesystem::path Written(const std::string& text) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "report.jsonl";
  std::ofstream(file) << text;
  return file;
}

ReadReport Read(const RunReport& report) { return ReadReportFile(Written(JsonLines(report))); }

// What is said, last line first.
std::string Said(const RunReport& earlier, const RunReport& later) {
  const ReadReport a = Read(earlier), b = Read(later);
  const std::string text = ComparisonText(a, b, Compare(a, b));
  const size_t last = text.rfind('\n', text.size() - 2) + 1;
  return text.substr(last) + text.substr(0, last);
}
bool Worse(const RunReport& earlier, const RunReport& later) {
  return IsWorse(Compare(Read(earlier), Read(later)));
}

TEST(Comparison, TheSameReportTwiceIsNotWorse) {
  const RunReport report = Report({Passing("w2.ddp"), Failing("w4.zero3"), Unsupported("w4.lw")});
  EXPECT_FALSE(Worse(report, report));
  EXPECT_EQ(Said(report, report).rfind("not worse\n", 0), 0U) << Said(report, report);
}

TEST(Comparison, WhatIsBrokenNowIsNamedWithItsSmallestCase) {
  RunReport earlier = Report({Passing("w2.zero3.k2"), Passing("w2.zero3")});
  for (CaseReport& c : earlier.cases) c.judged = {"FS-05", "GE-05"};
  const RunReport later = Report({Failing("w2.zero3.k2"), Failing("w2.zero3")});
  EXPECT_TRUE(Worse(earlier, later));
  const std::string said = Said(earlier, later);
  EXPECT_EQ(said.rfind("worse: 2 cases with something broken\n", 0), 0U) << said;
  EXPECT_NE(said.find("broken  FS-05  2 cases: w2.zero3 and 1 more\n    layers.0 is reduced twice\n"
                      "    shardproof replay --case w2.zero3\n"),
            std::string::npos)
      << said;
  EXPECT_EQ(Said(later, earlier).rfind("not worse: 2 cases with something fixed\n", 0), 0U);
}

TEST(Comparison, WhatIsNoLongerJudgedIsWorseAndNotFixed) {
  const RunReport failing = Report({Failing("w2.zero3"), Passing("w2.ddp")});
  const RunReport declined = Report({Unsupported("w2.zero3"), Passing("w2.ddp")});
  const std::string said = Said(failing, declined);
  EXPECT_EQ(said.rfind("worse: 1 case with something no longer judged\n", 0), 0U) << said;
  EXPECT_NE(said.find("no longer judged  FS-05, GE-05  1 case: w2.zero3\n"), std::string::npos);
  EXPECT_EQ(said.find("fixed"), std::string::npos) << said;
}

TEST(Comparison, WhatFollowsFromANewFindingIsNotToldBesideIt) {
  CaseReport whole = Passing("w2.zero3");
  whole.judged = {"FS-05", "GE-05", "FS-15"};
  CaseReport other = Failing("w2.zero3");  // FS-15 is not judged
  Finding follower = other.findings[0].finding;
  follower.requirement = "GE-05";
  follower.follows = 0;
  other.findings.push_back({follower, ""});
  const Comparison found = Compare(Read(Report({whole})), Read(Report({other})));
  EXPECT_EQ(found.broken.size(), 1U);
  EXPECT_TRUE(found.broken.contains("FS-05"));
  EXPECT_TRUE(found.lost.empty());
}

TEST(Comparison, AWaiverIsToldAndNotWorse) {
  CaseReport waived = Failing("w2.zero3");
  waived.status = Status::kWaived;
  waived.findings[0].waived_because = "known";
  const RunReport earlier = Report({Failing("w2.zero3")}), later = Report({waived});
  EXPECT_FALSE(Worse(earlier, later));
  EXPECT_NE(Said(earlier, later).find("waived now  FS-05  1 case"), std::string::npos);
  EXPECT_TRUE(Worse(later, earlier));
}

// A crash shows what a run that ends says nothing of.
TEST(Comparison, WhatOnlyAFailureShowsIsNotLost) {
  CaseReport crashed = Failing("w2.zero3"), passed = Passing("w2.zero3");
  crashed.findings[0].finding.requirement = "GE-26";
  crashed.judged = {"FS-05", "GE-07", "GE-26"};
  EXPECT_FALSE(Worse(Report({crashed}), Report({passed})));
  EXPECT_NE(Said(Report({crashed}), Report({passed})).find("fixed  GE-26  1 case: w2.zero3"),
            std::string::npos);
  passed.not_checkable = {{"GE-26", "why", NotCheckable::Kind::kNotAsked}};
  EXPECT_TRUE(Worse(Report({crashed}), Report({passed})));
  // Of a case that passed before it is a loss.
  CaseReport before = Passing("w2.zero3");
  before.judged = {"FS-05", "GE-07"};
  EXPECT_TRUE(Worse(Report({before}), Report({Passing("w2.zero3")})));
}

TEST(Comparison, WithinABoundIsLessThanBitForBit) {
  const RunReport exact = Report({Passing("w2.zero3")});
  RunReport bounded = exact;
  bounded.cases[0].status = Status::kBounded;
  bounded.cases[0].not_checkable = {{"FS-05", "why", NotCheckable::Kind::kBounded}};
  EXPECT_TRUE(Worse(exact, bounded));
  EXPECT_FALSE(Worse(bounded, exact));
  EXPECT_FALSE(Worse(bounded, bounded));
  EXPECT_NE(Said(Report({Failing("w2.zero3")}), bounded).find("fixed  FS-05"), std::string::npos);
}

// The core profile has other cases when an engine takes more.
TEST(Comparison, AGoneCaseWhosePairsOthersJudgeIsNotWorse) {
  const RunReport before =
      Report({Passing("w2.zero3.k2"), Passing("w4.zero3"), Passing("w2.ddp.k2")});
  const RunReport kept =
      Report({Passing("w2.zero3.k2.lw"), Passing("w4.zero3"), Passing("w2.ddp.k2")});
  EXPECT_FALSE(Worse(before, kept)) << Said(before, kept);
  EXPECT_NE(Said(before, kept).find("gone, judged in others  1 case: w2.zero3.k2"),
            std::string::npos);
  EXPECT_TRUE(Worse(before, Report({Passing("w4.zero3"), Passing("w2.ddp.k2")})));
}

TEST(Comparison, AnEngineThatLoadsAgainIsFixed) {
  EXPECT_FALSE(Worse(Report({Failing(kEngineRow)}), Report({Passing("w2.ddp")})));
  EXPECT_TRUE(Worse(Report({Passing("w2.ddp")}), Report({Failing(kEngineRow)})));
}

TEST(Comparison, NothingJudgedInBothIsNoComparison) {
  const RunReport none = Report({Unsupported("w2.ddp")});
  EXPECT_THROW(Worse(none, none), std::invalid_argument);
  EXPECT_TRUE(Worse(Report({Passing("w2.ddp")}), none));
}

TEST(Comparison, CasesThatCameOrWent) {
  const RunReport one = Report({Passing("w2.ddp")});
  EXPECT_TRUE(Worse(Report({Passing("w2.ddp"), Passing("w4.ddp")}), one));
  EXPECT_FALSE(Worse(Report({Passing("w2.ddp"), Unsupported("w4.ddp")}), one));
  EXPECT_FALSE(Worse(one, Report({Passing("w2.ddp"), Passing("w4.ddp")})));
  EXPECT_TRUE(Worse(one, Report({Passing("w2.ddp"), Failing("w4.ddp")})));
}

TEST(Comparison, ASuiteThatFailedAndANewProblemAreWorse) {
  const RunReport one = Report({Passing("w2.ddp")});
  RunReport failed = one, problem = one;
  failed.cases[0].status = Status::kSuiteError;
  failed.cases[0].judged.clear();
  problem.problems = {"a waiver that nothing needs"};
  EXPECT_TRUE(Worse(one, failed));
  EXPECT_TRUE(Worse(one, problem));
  EXPECT_FALSE(Worse(problem, problem));
}

TEST(Comparison, SaysThatOtherCasesWereAskedOrAFaultPlanted) {
  const RunReport core = Report({Passing("w2.ddp")});
  RunReport one = core;
  one.profile = "-";
  one.asked = "1 case";
  EXPECT_NE(Said(core, one).find("of other runs: asked profile core, then 1 case\n"),
            std::string::npos);
  EXPECT_EQ(Said(one, one).find("other runs"), std::string::npos);
  one.fault = "event_wait:3:drop@1";
  EXPECT_NE(Said(core, one).find("; fault none, then event_wait:3:drop@1\n"), std::string::npos);
}

TEST(Comparison, AWarningIsNoFailure) {
  CaseReport warned = Failing("w2.ddp");
  warned.status = Status::kPass;
  warned.findings[0].warning = true;
  EXPECT_FALSE(Worse(Report({Passing("w2.ddp")}), Report({warned})));
}

TEST(Comparison, MarkdownIsShortWhateverTheReportsHold) {
  std::vector<CaseReport> before, after;
  for (int i = 0; i < 500; ++i) {
    const std::string id = "w2.zero3.seq" + std::to_string(i);
    before.push_back(Passing(id));
    after.push_back(Failing(id));
    after.back().findings[0].finding.requirement = "FS-" + std::to_string(i);
    after.back().findings[0].finding.message = "<script>`|";
  }
  const ReadReport a = Read(Report(before)), b = Read(Report(after));
  const std::string text = ComparisonMarkdown(a, b, Compare(a, b));
  EXPECT_LE(Times("\n", text), 60U) << text;
  EXPECT_NE(text.find("and 485 rows more, broken"), std::string::npos) << text;
  EXPECT_NE(text.find("worse: 500 cases"), std::string::npos);
}

void ExpectRefused(const std::string& text, const std::string& why) {
  try {
    ReadReportFile(Written(text));
    FAIL() << text;
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
  }
}

TEST(ReadReportFile, AReportThatIsCutOffIsRefused) {
  const RunReport report = Report({Passing("w2.ddp"), Passing("w4.ddp")});
  const std::string head = HeaderLine(report), one = CaseLine(report.cases[0]);
  ExpectRefused("", "report.jsonl is empty");
  ExpectRefused(head + one, "the run did not end");
  ExpectRefused(head + one + FooterLine(report), ":3: the last line counts other cases");
  ExpectRefused(head + one.substr(0, one.size() / 2) + "\n", ":2: this is no line of a report");
  ExpectRefused(head + one + one, ":3: a second line of case w2.ddp");
  ExpectRefused(head + "{}\n", ":2: this line lacks what a report has");
  ExpectRefused("{}\n", ":1: a report begins with");
  ExpectRefused(JsonLines(report) + one, ":5: a line behind the end");
  EXPECT_THROW(ReadReportFile("/nowhere"), std::invalid_argument);
}

}  // namespace
}  // namespace shardproof
