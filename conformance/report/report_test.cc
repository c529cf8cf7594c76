#include <gtest/gtest.h>

#include <sstream>

#include "conformance/report/console.h"
#include "conformance/report/files.h"
#include "conformance/report/reports_for_test.h"
#include "conformance/report/verdict_rule.h"
#include "conformance/report/waivers.h"

namespace shardproof {
namespace {

TEST(Report, AllPassIsConformant) {
  const RunReport report = Report({Passing("a"), Passing("b")});
  EXPECT_EQ(LastLine(report), "conformant: 2 pass");
  EXPECT_EQ(ExitCode(report), 0);
}
TEST(Report, OneFailureIsNotConformant) {
  const RunReport report = Report({Passing("a"), Failing("b")});
  EXPECT_EQ(LastLine(report), "not conformant: 1 pass, 1 fail");
  EXPECT_EQ(ExitCode(report), 1);
}
TEST(Report, SuiteErrorHasItsOwnExitCode) {
  RunReport report = Report({Passing("a"), Passing("b")});
  report.cases[1].status = Status::kSuiteError;
  EXPECT_EQ(ExitCode(report), 2);
}
TEST(Report, NothingJudgedIsNotConformant) {
  EXPECT_EQ(ExitCode(Report({})), 1);
  RunReport report = Report({Passing("a")});
  report.cases[0].status = Status::kUnsupported;
  EXPECT_EQ(LastLine(report), "not conformant: 1 unsupported, nothing was judged");
}

TEST(Console, FindingNamesEverythingAPersonNeeds) {
  std::ostringstream out;
  Console console(out, {}, false, 1, SentenceOf);
  const RunReport report = Report({Failing("w8.zero3")});
  console.CaseDone(report.cases[0]);
  console.Finish(report);
  EXPECT_EQ(out.str(),
            "fail  w8.zero3\n"
            "  FS-05  sentence of FS-05\n"
            "    case       w8.zero3\n"
            "    where      rank 3, step 1, event 41\n"
            "    stream     reduce\n"
            "    operation  reduce_scatter of grad on dp_cp\n"
            "    expected   one reduction\n"
            "    seen       two\n"
            "               layers.0 is reduced twice\n"
            "    replay     shardproof replay --case w8.zero3\n"
            "1 of 1 cases judged, 1 not passed\n"
            "requirements: 2 judged, 0 not judged in some case, 0 not asked\n"
            "not conformant: 1 fail\n");
}
TEST(Console, AFindingOfTwoRunsTellsHowToRunTheOther) {
  CaseReport c = Failing("w8.zero3");
  c.findings.front().partner = "shardproof replay --case w8.ddp";
  const std::string text = FindingText(TellFindings(c, false).front(), c, SentenceOf);
  EXPECT_NE(text.find("    replay     shardproof replay --case w8.zero3\n"
                      "    partner    shardproof replay --case w8.ddp\n"),
            std::string::npos)
      << text;
}
TEST(Console, TerminalShowsABar) {
  std::ostringstream out;
  Console console(out, {true, false, 0}, false, 2, SentenceOf);
  console.CaseDone(Passing("a"));
  EXPECT_NE(out.str().find("\r\033[K[====================                    ] 1/2"),
            std::string::npos);
}

TEST(Console, TheBarFitsARowThatIsNoCase) {
  std::ostringstream out;
  Console console(out, {true, false, 0}, false, 1, SentenceOf);
  for (const char* id : {kEngineRow, "a"}) console.CaseDone(Passing(id));
  EXPECT_NE(out.str().find("\r\033[K[" + std::string(40, '=') + "] 2/1"), std::string::npos);
}

// The case's finding, one more of its requirement, one that says the same of the same event, and
// two that follow.
CaseReport Folded() {
  CaseReport c = Failing("a");
  const Finding first = c.findings[0].finding;
  const auto add = [&](const char* requirement, int64_t event) -> Finding& {
    c.findings.push_back({first, ""});
    Finding& finding = c.findings.back().finding;
    finding.requirement = requirement;
    finding.event = event;
    finding.follows = 0;
    return finding;
  };
  add("EP-23", 41);
  add("FS-05", 50).follows = -1;
  add("GE-30", 60);
  add("GE-30", 61);
  return c;
}

TEST(Folded, WhatFollowsIsOneLineWithACount) {
  const char* line =
      "    and 1 more of FS-05; 2 findings follow from it: GE-30 (2) (--all shows each)\n";
  const RunReport report = Report({Folded()});
  std::ostringstream out;
  Console(out, {}, false, 1, SentenceOf).CaseDone(report.cases[0]);
  for (const std::string& text : {out.str(), SummaryMarkdown(report, SentenceOf)}) {
    EXPECT_NE(text.find("FS-05, EP-23  sentence of FS-05\n"), std::string::npos) << text;
    EXPECT_NE(text.find(line), std::string::npos) << text;
    EXPECT_EQ(Times("seen       two", text), 1u) << text;
  }
  EXPECT_EQ(Times("seen       two", Junit(report, SentenceOf)), 1u);
}
TEST(Folded, AllUnfolds) {
  RunReport report = Report({Folded()});
  report.all_findings = true;
  std::ostringstream out;
  Console(out, {}, false, 1, SentenceOf, true).CaseDone(report.cases[0]);
  for (const std::string& text : {out.str(), Junit(report, SentenceOf)}) {
    EXPECT_EQ(Times("seen       two", text), 5u) << text;
    EXPECT_EQ(Times("--all", text), 0u) << text;
  }
}
TEST(Folded, JsonNamesTheCauseAndKeepsAll) {
  const std::string text = JsonLines(Report({Folded()}));
  EXPECT_EQ(Times("\"seen\":\"two\"", text), 5u);
  EXPECT_EQ(Times("\"follows\":{\"finding\":0,\"requirement\":\"FS-05\"}", text), 3u) << text;
}
TEST(Waivers, OneOfACauseCoversWhatFollowsFromIt) {
  RunReport report = Report({Folded()});
  const Waiver waiver{"FS-05", "a", "", "known", "2099-01-01", 1};
  WaiveFindings(report.cases[0], {waiver}, "2026-01-01");
  EXPECT_EQ(report.cases[0].status, Status::kWaived);
  EXPECT_EQ(report.cases[0].findings[3].waived_because, "it follows from FS-05: known");
  report.cases[0].findings.push_back(Failing("a").findings[0]);  // stands for itself
  report.cases[0].findings.back().finding.requirement = "GE-05";
  report.cases[0].findings.back().waived_because = "";
  WaiveFindings(report.cases[0], {waiver}, "2026-01-01");
  EXPECT_EQ(report.cases[0].status, Status::kFail);
}
TEST(Waivers, OneOfWhatFollowsLeavesTheCauseOpen) {
  RunReport report = Report({Folded()});
  WaiveFindings(report.cases[0], {{"GE-30", "a", "", "known", "2099-01-01", 1}}, "2026-01-01");
  EXPECT_EQ(report.cases[0].status, Status::kFail);
}
TEST(Waivers, ACaseThatFailsByAnotherRequirementIsNoUnexpectedPass) {
  RunReport report = Report({Failing("w8.zero3")});
  ApplyWaivers(report, {{{"GE-05", "w8.*", "", "known", "2027-01-01", 1}}}, "2026-11-21");
  EXPECT_TRUE(report.problems.empty());
  ASSERT_EQ(report.facts.size(), 1u);
  EXPECT_NE(report.facts[0].find("failed by something else"), std::string::npos);
}

TEST(JsonLines, HasHeaderCasesAndFooter) {
  const std::string text = JsonLines(Report({Passing("a"), Failing("b")}));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  EXPECT_NE(text.find("\"shardproof_report\":1"), std::string::npos);
  EXPECT_NE(text.find("\"end\":2"), std::string::npos);
  EXPECT_NE(text.find("\"rank\":3"), std::string::npos);
}
TEST(Junit, EscapesAndCounts) {
  const std::string text = Junit(Report({Passing("a"), Failing("b<&>")}), SentenceOf);
  EXPECT_NE(text.find("lib:&lt;x&gt;"), std::string::npos);
  EXPECT_NE(text.find("tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\""), std::string::npos);
  EXPECT_NE(text.find("name=\"b&lt;&amp;&gt;\"><failure"), std::string::npos);
}
TEST(Junit, HasASuiteForEachGroupWithTimesPropertiesAndWhatIsBeside) {
  RunReport report = Report({Passing("w2.zero3"), Failing("w2.ddp"), Passing("w4.zero3.k2")});
  report.began = "2026-11-25T02:10:00Z";
  report.engine = "mine 2.1";
  report.cases[0].seconds = 0.25;
  report.cases[2].seconds = 1.5;
  report.cases[0].notes = {"k* is 2"};
  report.cases[1].printed[1] = "loss nan\n";
  const std::string text = Junit(report, SentenceOf);
  for (const char* part :
       {"<testsuites name=\"shardproof lib:&lt;x&gt; on sim\" tests=\"3\" failures=\"1\" "
        "errors=\"0\" "
        "skipped=\"0\" time=\"1.750\" timestamp=\"2026-11-25T02:10:00\">",
        "<testsuite name=\"ddp\" tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\" timestamp=",
        "<testsuite name=\"zero3\" tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"0\" "
        "time=\"1.750\"",
        "<property name=\"engine\" value=\"mine 2.1\"/>",
        "<property name=\"verdict\" value=\"not conformant\"/>",
        "<testcase classname=\"shardproof.zero3\" name=\"w2.zero3\" "
        "time=\"0.250\"><system-out>note: "
        "k* is 2&#10;</system-out></testcase>",
        "</failure><system-out>rank 1 printed:&#10;  loss nan&#10;</system-out>"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}
TEST(Junit, BytesThatXmlForbidsAreReplaced) {
  RunReport report = Report({Failing("b")});
  report.cases[0].findings[0].finding.message = "bell \x07 and \xFF";
  const std::string text = Junit(report, SentenceOf);
  EXPECT_NE(text.find("bell \\x07 and \\xff&#10;"), std::string::npos) << text;
}
TEST(Junit, AFailureWithoutFindingsSaysWhy) {
  RunReport report = Report({Passing("b")});
  report.cases[0].status = Status::kFail;
  report.cases[0].reason = "rank 2 died of signal 11";
  EXPECT_NE(Junit(report, SentenceOf)
                .find("<failure type=\"fail\" message=\"rank 2 died of signal 11\">"),
            std::string::npos);
}
TEST(Junit, EveryStatusHasItsElement) {
  std::vector<CaseReport> cases(4, Passing("c"));
  cases[0].status = Status::kWaived;
  cases[1].status = Status::kUnsupported;
  cases[2].status = Status::kNotCheckable;
  cases[3].status = Status::kSuiteError;
  const std::string text = Junit(Report(cases), SentenceOf);
  EXPECT_NE(text.find("failures=\"1\" errors=\"1\" skipped=\"1\""), std::string::npos);
  EXPECT_NE(text.find("<failure type=\"not-checkable\" message=\"\">"), std::string::npos);
}
TEST(Junit, AProblemOfAFileIsAFailure) {
  RunReport report = Report({Passing("a")});
  report.problems.push_back("waivers: line 3 <x> is unused");
  const std::string text = Junit(report, SentenceOf);
  EXPECT_NE(text.find("tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\""), std::string::npos)
      << text;
  EXPECT_NE(
      text.find("<failure type=\"problem\" message=\"waivers: line 3 &lt;x&gt; is unused\"/>"),
      std::string::npos)
      << text;
}
TEST(Summary, ListsFailuresAndWhatWasNotCheckable) {
  RunReport report = Report({Failing("b")});
  report.cases[0].not_checkable.push_back({"FS-09", "no marks"});
  const std::string text = SummaryMarkdown(report, SentenceOf);
  EXPECT_NE(text.find("# not conformant: 1 fail"), std::string::npos);
  EXPECT_NE(text.find("not judged (1 case, b): FS-09: no marks"), std::string::npos);
}

}  // namespace
}  // namespace shardproof
