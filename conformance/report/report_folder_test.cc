#include "conformance/report/report_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>

namespace shardproof {
namespace {

namespace fs = std::filesystem;

std::string SentenceOf(std::string_view id) { return "sentence of " + std::string(id); }

CaseReport Passing(const std::string& id) {
  CaseReport c;
  c.status = Status::kPass;
  c.judged = {"GE-05"};
  c.id = id;
  return c;
}

class ReportFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* root = std::getenv("TEST_TMPDIR");
    std::string name = (fs::path(root == nullptr ? "/tmp" : root) / "report.XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Text(const std::string& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    EXPECT_TRUE(in) << name;
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  static size_t LinesOf(const std::string& text) {
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  static std::string ErrorOf(const fs::path& folder) {
    try {
      ReportFolder(folder.string(), RunReport{}, SentenceOf);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_;
};

TEST_F(ReportFolderTest, SaysFromTheStartThatTheRunHasNotEnded) {
  const ReportFolder files(folder_.string(), RunReport{}, SentenceOf);
  EXPECT_EQ(LinesOf(Text("report.jsonl")), 1u);
  EXPECT_NE(Text("junit.xml").find("tests=\"1\" failures=\"0\" errors=\"1\""), std::string::npos);
  EXPECT_NE(Text("summary.md").find("has not ended"), std::string::npos);
}

TEST_F(ReportFolderTest, ACaseIsOnDiskWhenItHasEnded) {
  RunReport report;
  ReportFolder files(folder_.string(), report, SentenceOf);
  for (size_t n = 1; n <= 2 * kCasesPerWrite + 1; ++n) {
    report.cases.push_back(Passing("w" + std::to_string(n)));
    files.CaseDone(report.cases.back(), [&] { return report; });
    ASSERT_EQ(LinesOf(Text("report.jsonl")), 1 + n);
    const std::string tests = std::to_string(n / kCasesPerWrite * kCasesPerWrite + 1);
    ASSERT_NE(Text("junit.xml").find("tests=\"" + tests + "\" failures=\"0\" errors=\"1\""),
              std::string::npos)
        << n;
  }
  EXPECT_EQ(Text("report.jsonl").find("\"end\""), std::string::npos);
}

TEST_F(ReportFolderTest, TheEndIsInTheOrderOfTheReport) {
  RunReport report;
  ReportFolder files(folder_.string(), report, SentenceOf);
  report.cases = {Passing("w2"), Passing("w1")};
  for (const CaseReport& c : report.cases) files.CaseDone(c, [&] { return report; });
  report.cases = {Passing("w1"), Passing("w2")};
  files.Finish(report);
  const std::string text = Text("report.jsonl");
  EXPECT_EQ(LinesOf(text), 4u);
  EXPECT_LT(text.find("\"w1\""), text.find("\"w2\""));
  EXPECT_NE(text.find("\"end\":2"), std::string::npos);
  EXPECT_NE(Text("junit.xml").find("tests=\"2\" failures=\"0\" errors=\"0\""), std::string::npos);
  EXPECT_EQ(Text("summary.md").find("has not ended"), std::string::npos);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 3);
}

// A run that is killed in between leaves a summary that says less than report.jsonl, never more:
// here report.jsonl cannot be written.
TEST_F(ReportFolderTest, TheFooterIsOnDiskBeforeTheSummaryClaimsTheEnd) {
  RunReport report;
  report.cases = {Passing("w2")};
  ReportFolder files(folder_.string(), RunReport{}, SentenceOf);
  fs::create_directories(folder_ / "report.jsonl.part");
  EXPECT_THROW(files.Finish(report), std::runtime_error);
  EXPECT_NE(Text("summary.md").find("has not ended"), std::string::npos);
  EXPECT_NE(Text("junit.xml").find("errors=\"1\""), std::string::npos);
}

TEST_F(ReportFolderTest, AllCasesAreAskedForOnlyWhenTheyAreWritten) {
  ReportFolder files(folder_.string(), RunReport{}, SentenceOf);
  size_t asked = 0;
  for (size_t n = 1; n <= 2 * kCasesPerWrite; ++n) {
    files.CaseDone(Passing("w2"), [&] { return ++asked, RunReport{}; });
    ASSERT_EQ(asked, n / kCasesPerWrite);
  }
}

TEST_F(ReportFolderTest, NothingOfAnOlderRunIsLeft) {
  RunReport report;
  report.cases = {Passing("w2")};
  ReportFolder(folder_.string(), RunReport{}, SentenceOf).Finish(report);
  EXPECT_NE(Text("summary.md").find("# conformant"), std::string::npos);
  const ReportFolder files(folder_.string(), RunReport{}, SentenceOf);
  EXPECT_EQ(LinesOf(Text("report.jsonl")), 1u);
  EXPECT_NE(Text("junit.xml").find("errors=\"1\""), std::string::npos);
  EXPECT_NE(Text("summary.md").find("# not conformant"), std::string::npos);
}

TEST_F(ReportFolderTest, OneThatIsVoidSaysNothing) {
  RunReport report;
  report.cases = {Passing("w2")};
  const MoreFiles more = [](const RunReport&, const Sentence&) {
    return std::vector<std::pair<std::string, std::string>>{
        {"report.html", "x"}, {"report-2.html", "x"}, {"badge.svg", "x"}};
  };
  ReportFolder(folder_.string(), RunReport{}, SentenceOf, more).Finish(report);
  std::ofstream(folder_ / "mine.md") << "x";
  VoidReport(folder_);
  VoidReport(folder_);
  EXPECT_EQ(Text("report.jsonl"), "");
  EXPECT_EQ(Text("mine.md"), "x");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
}

TEST_F(ReportFolderTest, VoidingKeepsWhatIsNotItsOwn) {
  { ReportFolder(folder_.string(), RunReport{}, SentenceOf).Finish(RunReport{}); }
  const std::string lines = Text("report.jsonl");
  fs::create_hard_link(folder_ / "report.jsonl", folder_ / "kept.jsonl");  // as cp -al makes them
  for (const char* name : {"report-notes.html", "reporters.html", "report-2.html"})
    std::ofstream(folder_ / name) << "x";
  VoidReport(folder_);
  EXPECT_EQ(Text("report.jsonl"), "");
  EXPECT_EQ(Text("kept.jsonl"), lines);
  EXPECT_TRUE(fs::exists(folder_ / "report-notes.html") && fs::exists(folder_ / "reporters.html"));
  EXPECT_FALSE(fs::exists(folder_ / "report-2.html"));
}

TEST_F(ReportFolderTest, WhatIsNoReportIsNotVoided) {
  VoidReport(folder_ / "nowhere");
  std::ofstream(folder_ / "junit.xml") << "of another tool";
  VoidReport(folder_);
  std::ofstream(folder_ / "report.jsonl") << "{}\n";
  VoidReport(folder_);
  EXPECT_EQ(Text("junit.xml"), "of another tool");
  EXPECT_EQ(Text("report.jsonl"), "{}\n");
}

TEST_F(ReportFolderTest, FoldersAreMade) {
  const ReportFolder files((folder_ / "a" / "b").string(), RunReport{}, SentenceOf);
  EXPECT_TRUE(fs::exists(folder_ / "a" / "b" / "report.jsonl"));
}

TEST_F(ReportFolderTest, WhatCannotBeWrittenIsNamedAtTheStart) {
  std::ofstream(folder_ / "file") << "x";
  const std::string file = (folder_ / "file").string();
  EXPECT_NE(ErrorOf(file).find("--report " + file + ": cannot write " + file), std::string::npos)
      << ErrorOf(file);
  EXPECT_NE(ErrorOf(folder_ / "file" / "below").find("cannot write"), std::string::npos);
  EXPECT_NE(ErrorOf("/proc/here").find("cannot write /proc/here"), std::string::npos);
  fs::create_directories(folder_ / "taken" / "junit.xml" / "x");
  EXPECT_NE(ErrorOf(folder_ / "taken").find("junit.xml"), std::string::npos);
}

}  // namespace
}  // namespace shardproof
