#include "conformance/report/verdict_rule.h"

#include <gtest/gtest.h>

#include <sstream>

#include "conformance/report/console.h"
#include "conformance/report/files.h"
#include "conformance/report/waivers.h"

namespace shardproof {
namespace {

using Kind = NotCheckable::Kind;

CaseReport CaseWith(bool finding, bool judged, std::vector<NotCheckable> open) {
  CaseReport c;
  c.id = "w2.zero3";
  if (judged) c.judged = {"GE-01"};
  if (finding) c.findings.push_back({{}, ""});
  c.not_checkable = std::move(open);
  c.status = StatusOf(c);
  return c;
}

RunReport Report(std::vector<CaseReport> cases) {
  RunReport report;
  report.cases = std::move(cases);
  return report;
}

CaseReport Passing() { return CaseWith(false, true, {}); }
CaseReport Partial() { return CaseWith(false, true, {{"FS-15", "no results"}}); }
CaseReport Empty() { return CaseWith(false, false, {{"FS-15", "no results"}}); }
CaseReport Unsupported() {
  CaseReport c = Passing();
  c.status = Status::kUnsupported;
  return c;
}
CaseReport Illegal(CaseReport c) {
  c.legal = false;
  return c;
}

TEST(RuleOfACase, NothingJudgedIsNotCheckable) {
  EXPECT_EQ(CaseWith(false, false, {}).status, Status::kNotCheckable);
  EXPECT_EQ(Empty().status, Status::kNotCheckable);
}
TEST(RuleOfACase, MissingEvidenceIsPartial) { EXPECT_EQ(Partial().status, Status::kPartial); }
TEST(RuleOfACase, WhatIsNotAskedChangesNothing) {
  EXPECT_EQ(CaseWith(false, true, {{"FS-04", "no marks", Kind::kNotAsked}}).status, Status::kPass);
  EXPECT_EQ(CaseWith(false, false, {{"FS-04", "no marks", Kind::kNotAsked}}).status,
            Status::kNotCheckable);
}
TEST(RuleOfACase, WhatIsJudgedWithinABoundIsSaidAndHidesNothing) {
  const NotCheckable bounded = {"FS-24", "rounds its own way", Kind::kBounded};
  EXPECT_EQ(CaseWith(false, true, {bounded}).status, Status::kBounded);
  EXPECT_EQ(CaseWith(false, false, {bounded}).status, Status::kNotCheckable);
  EXPECT_EQ(CaseWith(false, true, {bounded, {"FS-15", "no results"}}).status, Status::kPartial);
  EXPECT_EQ(CaseWith(true, true, {bounded}).status, Status::kFail);
}
TEST(RuleOfACase, AFindingIsAFailureWhateverElseIsSaid) {
  EXPECT_EQ(CaseWith(true, false, {}).status, Status::kFail);
  EXPECT_EQ(CaseWith(true, true, {{"FS-15", "no results"}}).status, Status::kFail);
}
TEST(RuleOfACase, AWaiverExcusesItsFindingAndNotWhatWasNotLookedAt) {
  CaseReport whole = CaseWith(true, true, {}), open = CaseWith(true, true, {{"GE-03", "GE-01"}});
  for (CaseReport* c : {&whole, &open}) c->findings[0].waived_because = "issue 17";
  EXPECT_EQ(StatusOf(whole), Status::kWaived);
  EXPECT_EQ(StatusOf(open), Status::kPartial);
}
TEST(RuleOfACase, IsTheSameForResultsOfChecks) {
  CheckResult result;
  EXPECT_EQ(StatusOf(result, {}), Status::kNotCheckable);
  result.judged = {"GE-01"};
  EXPECT_EQ(StatusOf(result, {}), Status::kPass);
  result.not_checkable = {{"FS-04", "no marks", Kind::kNotAsked}};
  EXPECT_EQ(StatusOf(result, {}), Status::kPass);
  result.not_checkable.push_back({"GE-05", "no memory"});
  EXPECT_EQ(StatusOf(result, {}), Status::kPartial);
  result.findings.emplace_back();
  EXPECT_EQ(StatusOf(result, {}), Status::kFail);
}

CaseReport Warned(Status before = Status::kPass) {
  CaseReport c = CaseWith(true, true, {});
  c.findings[0].warning = true;
  c.findings[0].finding.requirement = "GE-12";
  c.status = StatusAfter(before, c);
  return c;
}

TEST(RuleOfACase, ABrokenShouldIsAWarningUnlessStrict) {
  CheckResult result;
  result.judged = {"GE-12"};
  result.findings.emplace_back().requirement = "GE-12";
  EXPECT_EQ(StatusOf(result, {"GE-12"}), Status::kPass);
  EXPECT_EQ(StatusOf(result, {}), Status::kFail);
  EXPECT_EQ(StatusOf(result, {"GE-13"}), Status::kFail);
  result.not_checkable = {{"GE-05", "no memory"}};
  EXPECT_EQ(StatusOf(result, {"GE-12"}), Status::kPartial) << "a warning hides nothing";
  result.findings.emplace_back().requirement = "GE-01";
  EXPECT_EQ(StatusOf(result, {"GE-12"}), Status::kFail);
  CaseReport strict = Warned();
  EXPECT_EQ(strict.status, Status::kPass);
  strict.findings[0].warning = false;
  EXPECT_EQ(StatusAfter(Status::kPass, strict), Status::kFail);
}
TEST(RuleOfACase, AWarningCanBeWaived) {
  RunReport report = Report({Warned()});
  EXPECT_EQ(LastLine(report), "conformant: 1 pass, 1 case with warnings");
  ApplyWaivers(report, {{{"GE-12", "w2.*", "", "issue 17", "2027-01-01", 1}}}, "2026-11-21");
  EXPECT_EQ(LastLine(report), "conformant: 1 waived");
  EXPECT_TRUE(CountWarnings(report).empty());
}
TEST(RuleOfACase, WhatAnEngineDeclinedFailsByAnOpenFindingOnly) {
  EXPECT_EQ(Warned(Status::kUnsupported).status, Status::kUnsupported);
  CaseReport c = CaseWith(true, true, {});
  EXPECT_EQ(StatusAfter(Status::kUnsupported, c), Status::kFail);
  EXPECT_EQ(StatusAfter(Status::kSuiteError, c), Status::kSuiteError);
  EXPECT_EQ(StatusAfter(Status::kUnsupported, Passing()), Status::kUnsupported);
}

struct RunRow {
  const char* name;
  std::vector<CaseReport> cases;
  int code, code_if_partial_is_allowed;
  const char* last_line;
};

TEST(RuleOfARun, EachVerdictHasItsExitCodeAndItsLine) {
  CaseReport failed = CaseWith(true, true, {}), broken = Passing();
  broken.status = Status::kSuiteError;
  const CaseReport bounded = CaseWith(false, true, {{"FS-24", "rounds", Kind::kBounded}});
  const std::vector<RunRow> rows = {
      {"all pass", {Passing(), Passing()}, 0, 0, "conformant: 2 pass"},
      {"one bounded", {Passing(), bounded}, 0, 0, "conformant within bounds: 1 pass, 1 bounded"},
      {"bounded alone", {bounded}, 0, 0, "conformant within bounds: 1 bounded"},
      {"bounded and partial",
       {Partial(), bounded},
       4,
       0,
       "conformant where judged: 1 partial, 1 bounded"},
      {"one partial", {Passing(), Partial()}, 4, 0, "conformant where judged: 1 pass, 1 partial"},
      {"one empty", {Passing(), Empty()}, 4, 0, "conformant where judged: 1 pass, 1 not-checkable"},
      {"one failed", {Partial(), failed}, 1, 1, "not conformant: 1 partial, 1 fail"},
      {"suite error",
       {Partial(), failed, broken},
       2,
       2,
       "not conformant: 1 partial, 1 fail, 1 suite-error"},
      {"no case", {}, 1, 1, "not conformant: there was no case to judge"},
      {"only empty", {Empty()}, 1, 1, "not conformant: 1 not-checkable, nothing was judged"},
      {"all unsupported",
       {Unsupported()},
       1,
       1,
       "not conformant: 1 unsupported, nothing was judged"},
      {"some unsupported", {Unsupported(), Passing()}, 0, 0, "conformant: 1 pass, 1 unsupported"},
      {"only refusals",
       {Unsupported(), Illegal(Passing())},
       1,
       1,
       "not conformant: 1 pass, 1 unsupported, no legal case was judged, only refusals of illegal "
       "ones"},
      {"a warning", {Passing(), Warned()}, 0, 0, "conformant: 2 pass, 1 case with warnings"},
      {"only a warning of what was declined",
       {Warned(Status::kUnsupported)},
       1,
       1,
       "not conformant: 1 unsupported, 1 case with warnings, nothing was judged"},
      {"only illegal cases asked", {Illegal(Passing())}, 0, 0, "conformant: 1 pass"},
  };
  for (const RunRow& row : rows) {
    RunReport report = Report(row.cases);
    EXPECT_EQ(ExitCode(report), row.code) << row.name;
    EXPECT_EQ(LastLine(report), row.last_line) << row.name;
    report.allow_partial = true;
    EXPECT_EQ(ExitCode(report), row.code_if_partial_is_allowed) << row.name;
  }
}

TEST(RuleOfARun, AProblemOfTheWaiverFileIsNotPartial) {
  RunReport report = Report({Partial()});
  report.problems = {"line 3 expired"};
  report.allow_partial = true;
  EXPECT_EQ(ExitCode(report), 1);
}

TEST(RuleOfARun, WaiversLeadToTheSameRule) {
  CaseReport c = CaseWith(true, true, {{"GE-03", "operations do not match (GE-01)"}});
  c.findings[0].finding.requirement = "GE-01";
  RunReport report = Report({c});
  ApplyWaivers(report, {{{"GE-01", "w2.*", "", "issue 17", "2027-01-01", 1}}}, "2026-11-21");
  EXPECT_EQ(LastLine(report), "conformant where judged: 1 partial");
}

TEST(Counts, EachRequirementIsCountedOnce) {
  CaseReport marked = Passing();
  marked.judged = {"FS-04", "GE-01"};
  CaseReport plain =
      CaseWith(false, true, {{"FS-04", "no marks", Kind::kNotAsked}, {"GE-05", "no memory"}});
  const RequirementCounts counts = CountRequirements(Report({marked, plain, plain}));
  EXPECT_EQ(counts.judged, 2u);
  EXPECT_EQ(counts.missing, 1u);
  EXPECT_EQ(counts.not_asked, 1u);
}

TEST(Lines, NameRequirementsByReason) {
  RunReport report = Report(
      {CaseWith(false, true, {{"FS-15", "no results"}, {"FS-16", "no results"}}), Partial()});
  report.cases[1].id = "w4.zero3";
  report.cases[1].not_checkable.push_back({"FS-04", "no marks", Kind::kNotAsked});
  EXPECT_EQ(
      RequirementLines(report, 12),
      (std::vector<std::string>{"requirements: 1 judged, 2 not judged in some case, 1 not asked",
                                "not judged (2 cases, such as w2.zero3): FS-15, FS-16: no results",
                                "not asked (1 case): FS-04: no marks"}));
  report.cases[1].not_checkable.push_back({"GE-05", "no memory"});
  EXPECT_EQ(RequirementLines(report, 1)[2], "and for 1 more reasons (--report DIR lists all)");
}

TEST(Formats, APartialCaseIsRedUnlessTheUserAllowsIt) {
  RunReport report = Report({Passing(), Partial()});
  const auto sentence = [](std::string_view) { return std::string(); };
  EXPECT_NE(
      Junit(report, sentence).find("<failure type=\"partial\" message=\"FS-15: no results\">"),
      std::string::npos);
  EXPECT_NE(JsonLines(report).find("\"verdict\":\"conformant where judged\""), std::string::npos);
  EXPECT_NE(JsonLines(report).find("\"not_checkable\":[{\"requirement\":\"FS-15\""),
            std::string::npos);
  EXPECT_NE(SummaryMarkdown(report, sentence).find("# conformant where judged: 1 pass, 1 partial"),
            std::string::npos);
  report.allow_partial = true;
  EXPECT_NE(Junit(report, sentence).find("failures=\"0\" errors=\"0\" skipped=\"1\""),
            std::string::npos);
  EXPECT_NE(Junit(report, sentence).find("<skipped message=\"partial: FS-15: no results\"/>"),
            std::string::npos);
}

TEST(Formats, AWarningIsCountedInEachAndFailsNone) {
  const RunReport report = Report({Warned()});
  const auto sentence = [](std::string_view) { return std::string("gathers can go on"); };
  EXPECT_NE(Junit(report, sentence).find("failures=\"0\" errors=\"0\" skipped=\"0\""),
            std::string::npos);
  EXPECT_NE(Junit(report, sentence).find("<system-out>GE-12  gathers can go on"),
            std::string::npos);
  EXPECT_NE(JsonLines(report).find("\"warning\":true"), std::string::npos);
  EXPECT_NE(JsonLines(report).find("\"warnings\":{\"GE-12\":1}"), std::string::npos);
  EXPECT_NE(JsonLines(report).find("\"status\":\"pass\""), std::string::npos);
  const std::string summary = SummaryMarkdown(report, sentence);
  EXPECT_NE(summary.find("# conformant: 1 pass, 1 case with warnings"), std::string::npos);
  EXPECT_NE(summary.find("warning (1 case): GE-12"), std::string::npos) << summary;
  EXPECT_NE(summary.find("## GE-12, a warning\n\n1 case, for example:"), std::string::npos);
}

TEST(Console, TellsOfWarningsOnceWithoutVerboseAndEachWithIt) {
  for (const bool verbose : {false, true}) {
    std::ostringstream out;
    Console console(out, {}, verbose, 1,
                    [](std::string_view) { return std::string("gathers can go on"); });
    const RunReport report = Report({Warned()});
    console.CaseDone(report.cases[0]);
    console.Finish(report);
    const std::string text = out.str();
    EXPECT_EQ(text.find("  GE-12  gathers can go on\n    warning    a SHOULD") != std::string::npos,
              verbose)
        << text;
    EXPECT_NE(text.find("\nwarning (1 case): GE-12  gathers can go on\nwarnings are of a SHOULD"),
              std::string::npos)
        << text;
  }
}

TEST(Console, SaysWhatWasJudgedAndWhatNot) {
  std::ostringstream out;
  Console console(out, {}, true, 1, [](std::string_view) { return std::string(); });
  const RunReport report = Report({Partial()});
  console.CaseDone(report.cases[0]);
  console.Finish(report);
  EXPECT_EQ(out.str(),
            "partial  w2.zero3  (FS-15: no results)\n"
            "requirements: 1 judged, 1 not judged in some case, 0 not asked\n"
            "not judged (1 case, w2.zero3): FS-15: no results\n"
            "conformant where judged: 1 partial\n");
}

CaseReport Row(Status status, bool legal = true) {
  CaseReport c;
  c.id = "w2.zero3";
  c.status = status;
  c.legal = legal;
  return c;
}
RunReport OfShard(std::vector<CaseReport> cases) {
  RunReport report;
  report.shard = "2/4";
  report.taken_elsewhere = "w2.ddp";
  report.cases = std::move(cases);
  return report;
}

TEST(Shard, WithoutACaseThatTheEngineTakesIsNotRedIfItTakesOneElsewhere) {
  for (RunReport report : {OfShard({}), OfShard({Row(Status::kUnsupported)})}) {
    EXPECT_EQ(Decide(report).verdict, RunVerdict::kNothingHere);
    EXPECT_EQ(ExitCode(report), 0);
    EXPECT_NE(LastLine(report).find("w2.ddp of another"), std::string::npos);
    report.taken_elsewhere.clear();  // it declines everything
    EXPECT_EQ(ExitCode(report), 1);
    report.taken_elsewhere = "w2.ddp";
    report.shard.clear();
    EXPECT_EQ(ExitCode(report), 1);
  }
}
TEST(Shard, IsAsRedAsWhatItHas) {
  EXPECT_EQ(ExitCode(OfShard({Row(Status::kUnsupported), Row(Status::kFail)})), 1);
  EXPECT_EQ(ExitCode(OfShard({Row(Status::kSuiteError)})), 2);
  EXPECT_EQ(ExitCode(OfShard({Row(Status::kPass, false), Row(Status::kUnsupported)})), 0);
  RunReport nowhere = OfShard({Row(Status::kPass, false), Row(Status::kUnsupported)});
  nowhere.taken_elsewhere.clear();
  EXPECT_EQ(ExitCode(nowhere), 1);
}
TEST(TimeBudget, WhatWasNotRunIsNotConformant) {
  RunReport report;
  report.cases = {Row(Status::kPass)};
  EXPECT_EQ(ExitCode(report), 0);
  report.cut_short = "--time-budget: of 9 cases 1 was run";
  EXPECT_EQ(LastLine(report),
            "conformant where judged: 1 pass, --time-budget: of 9 cases 1 was run");
  EXPECT_EQ(ExitCode(report), 4);
  report.cases.push_back(Row(Status::kFail));
  EXPECT_EQ(ExitCode(report), 1);
  report.cases = {};
  EXPECT_EQ(ExitCode(report), 1);
}

}  // namespace
}  // namespace shardproof
