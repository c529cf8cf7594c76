#include "conformance/report/waivers.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/report/reports_for_test.h"
#include "conformance/report/verdict_rule.h"
#include "conformance/report/waiver_draft.h"

namespace shardproof {
namespace {

Waiver Known(const std::string& glob = "w8.*", const std::string& message = "twice") {
  return {"FS-05", glob, message, "issue 17", "2027-01-01", 1};
}
TEST(Waivers, KnownFailureIsWaived) {
  RunReport report = Report({Failing("w8.zero3"), Passing("w4")});
  ApplyWaivers(report, {{Known()}}, "2026-11-21");
  EXPECT_EQ(LastLine(report), "conformant: 1 pass, 1 waived");
}
// No case ran: no waiver makes that good.
TEST(Waivers, AnEngineThatDoesNotLoadIsNotWaived) {
  RunReport report = Report({Failing(kEngineRow)});
  ApplyWaivers(report, {{Known(kEngineRow)}}, "2026-11-21");
  EXPECT_EQ(report.cases[0].status, Status::kFail);
  EXPECT_EQ(ExitCode(report), 1);
}

TEST(Waivers, AnotherFindingStaysRed) {
  RunReport report = Report({Failing("w8.zero3")});
  report.cases[0].findings.push_back(report.cases[0].findings[0]);
  report.cases[0].findings[1].finding.requirement = "GE-05";
  ApplyWaivers(report, {{Known()}}, "2026-11-21");
  EXPECT_EQ(report.cases[0].status, Status::kFail);
}
std::string Told(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Of one case that is named as such: it passes, whatever else the file serves.
TEST(Waivers, UnexpectedPassIsAProblem) {
  RunReport report = Report({Passing("w8.zero3")});
  report.whole = false;
  ApplyWaivers(report, {{Known("w8.zero3")}}, "2026-11-21");
  EXPECT_EQ(Told(report.problems),
            "waivers: line 1 (FS-05, case \"w8.zero3\"): unexpected pass, remove the waiver\n");
  EXPECT_EQ(ExitCode(report), 1);
}
// The failing case of this glob may be in another profile or shard: told, and not held against it.
TEST(Waivers, AGlobThatThisRunDidNotNeedIsAFact) {
  RunReport report = Report({Passing("w8.zero3")});
  ApplyWaivers(report, {{Known()}}, "2026-11-21");
  EXPECT_EQ(Told(report.problems), "");
  EXPECT_EQ(Told(report.facts),
            "waivers: line 1 (FS-05, case \"w8.*\") was not needed by the 1 case that it names and "
            "that were judged here\n");
  EXPECT_EQ(ExitCode(report), 0);
}
TEST(Waivers, AStrictFileIsOfOneWholeProfile) {
  for (const bool whole : {true, false}) {
    RunReport passes = Report({Passing("w8.zero3")});
    passes.whole = whole;
    ApplyWaivers(passes, {{Known()}, true}, "2026-11-21");
    EXPECT_EQ(Told(passes.problems).find("unexpected pass") != std::string::npos, whole);
    RunReport other = Report({Passing("w4")});
    other.whole = whole;
    ApplyWaivers(other, {{Known()}, true}, "2026-11-21");
    EXPECT_EQ(Told(other.problems).find("no case of this run has such an id") != std::string::npos,
              whole);
  }
}
TEST(Waivers, WhatOtherProfilesNeedIsNoProblem) {
  RunReport report = Report({Passing("w4")});
  ApplyWaivers(report, {{Known()}}, "2026-11-21");
  EXPECT_EQ(Told(report.problems) + Told(report.facts), "");
}
// A case that fails is no unexpected pass, whatever other cases of the glob do.
TEST(Waivers, ACaseThatFailsDoesNotPassUnexpectedly) {
  RunReport report = Report({Passing("w8.zero3"), Failing("w8.zero1")});
  report.cases[1].findings[0].finding.requirement = "GE-21";
  for (const bool strict : {true, false}) {
    report.facts.clear();
    ApplyWaivers(report, {{Known()}, strict}, "2026-11-21");
    EXPECT_EQ(Told(report.problems), "");
    EXPECT_NE(Told(report.facts).find("failed by something else"), std::string::npos);
    EXPECT_EQ(ExitCode(report), 1);
  }
}
TEST(Waivers, AreKeyedByWhatWasSeenToo) {
  Waiver seen = Known("w8.*", "");
  seen.seen = "two";
  RunReport report = Report({Failing("w8.zero3")});
  ApplyWaivers(report, {{seen}}, "2026-11-21");
  EXPECT_EQ(LastLine(report), "conformant: 1 waived");
  seen.seen = "three";
  RunReport other = Report({Failing("w8.zero3")});
  ApplyWaivers(other, {{seen}}, "2026-11-21");
  EXPECT_EQ(other.cases[0].status, Status::kFail);
  // Every case, narrowed by nothing but what was seen.
  seen = {"FS-05", "*", "", "r", "2027-01-01", 1, "two"};
  RunReport all = Report({Failing("w8.zero3")});
  ApplyWaivers(all, {{seen}}, "2026-11-21");
  EXPECT_EQ(LastLine(all), "conformant: 1 waived");
}
TEST(Waivers, ExpiredIsAProblemAndWaivesNothing) {
  RunReport report = Report({Failing("w8.zero3")});
  ApplyWaivers(report, {{Known()}}, "2027-01-02");
  EXPECT_EQ(report.cases[0].status, Status::kFail);
  EXPECT_NE(report.problems.at(0).find("expired"), std::string::npos);
}
TEST(Waivers, OverBroadIsAProblemAndWaivesNothing) {
  for (const Waiver& broad : {Known("*", ""), Waiver{"*", "w8", "x", "r", "2027-01-01", 1}}) {
    RunReport report = Report({Failing("w8.zero3")});
    ApplyWaivers(report, {{broad}}, "2026-11-21");
    EXPECT_EQ(report.cases[0].status, Status::kFail);
    EXPECT_NE(report.problems.at(0).find("over-broad"), std::string::npos);
  }
}
TEST(Waivers, HoldsOnItsLastDay) {
  RunReport report = Report({Failing("w8.zero3")});
  ApplyWaivers(report, {{Known()}}, "2027-01-01");
  EXPECT_EQ(LastLine(report), "conformant: 1 waived");
}
TEST(Waivers, AnotherMessageIsNotWaived) {
  RunReport report = Report({Failing("w8.zero3")});
  ApplyWaivers(report, {{Known("w8.*", "thrice")}}, "2026-11-21");
  EXPECT_EQ(report.cases[0].status, Status::kFail);
  EXPECT_EQ(ExitCode(report), 1);
}
TEST(Waivers, ASuiteErrorIsNeverWaived) {
  RunReport report = Report({Failing("w8.zero3")});
  report.cases[0].status = Status::kSuiteError;
  ApplyWaivers(report, {{Known()}}, "2026-11-21");
  EXPECT_EQ(ExitCode(report), 2);
}
TEST(Waivers, FileIsReadAndErrorsNameTheLine) {
  const char* good =
      "[[waiver]]\nrequirement = \"FS-05\"\ncase = \"w8.*\"\nmessage = \"\"\nreason = "
      "\"r\"\nexpires = \"2027-01-01\"\n";
  EXPECT_EQ(ParseWaivers(good, "w.toml").waivers.size(), 1u);
  const auto error = [](const std::string& text) {
    try {
      ParseWaivers(text, "w.toml");
    } catch (const std::invalid_argument& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(error("[[waiver]]\nrequirement = \"FS-05\"\n"),
            "w.toml:1: \"case\" is missing or no string");
  EXPECT_NE(error("x = 1\n").find("w.toml:1"), std::string::npos);
  EXPECT_NE(error("strict = 1\n").find("strict = true or false"), std::string::npos);
  EXPECT_TRUE(ParseWaivers("strict = true\n", "w.toml").strict);
  const std::string without =
      "[[waiver]]\nrequirement = \"FS-05\"\ncase = \"w8.*\"\nreason = \"r\"\n"
      "expires = \"2027-01-01\"\n";
  EXPECT_EQ(ParseWaivers(without + "seen = \"two\"\n", "w.toml").waivers.at(0).seen, "two");
  EXPECT_EQ(error(without + "mesage = \"x\"\n"),
            "w.toml:1: a waiver has no field \"mesage\". Did you mean message?");
  EXPECT_EQ(error(without + "seen = 2\n"), "w.toml:1: \"seen\" is missing or no string");
  EXPECT_NE(error("\n[[waiver\n").find("w.toml:2"), std::string::npos);
}
TEST(Glob, StarAndQuestionMark) {
  EXPECT_TRUE(GlobMatches("w8.*.k?", "w8.zero3.twin.k2"));
  EXPECT_FALSE(GlobMatches("w8.*.k?", "w8.zero3.k12"));
  EXPECT_TRUE(GlobMatches("*", ""));
}

// As report_file.h reads them.
ReadReport Read() {
  ReadReport report;
  report.file = "r\x1b/report.jsonl";
  report.impl = "lib:a.so";
  const std::string message = "says \"twice\" in C:\\x";
  report.cases["w2.zero3.k2.do=t"].causes = {{"FS-05", message}, {"GE-05", "race"}};
  report.cases["w2.zero1.k2.do=t"].causes = {{"FS-05", message}, {"FS-05", message}};
  report.cases["w4.ddp"].causes = {{"GE-21", "line\none"}};
  report.cases["w8.ddp"].status = "pass";
  report.cases[kEngineRow].causes = {{"GE-21", "no symbol"}};
  return report;
}
TEST(WaiverDraft, IsRefusedUntilTheReasonsAreWritten) {
  std::string draft = WaiverDraft(Read(), "2027-02-23");
  EXPECT_THROW(ParseWaivers(draft, "w.toml"), std::invalid_argument);
  EXPECT_NE(draft.find("no waiver excuses that"), std::string::npos);
  EXPECT_EQ(draft.find('\x1b'), std::string::npos);
  for (size_t at = 0; (at = draft.find("reason = \"\"", at)) != std::string::npos; ++at)
    draft.replace(at, 11, "reason = \"issue 17\"");
  const std::vector<Waiver> waivers = ParseWaivers(draft, "w.toml").waivers;
  ASSERT_EQ(waivers.size(), 3u);
  EXPECT_EQ(waivers[0].requirement + " " + waivers[0].case_glob, "FS-05 w2.*.k2.do=t");
  EXPECT_EQ(waivers[0].message, "says \"twice\" in C:\\x");
  EXPECT_EQ(waivers[1].requirement + " " + waivers[1].case_glob, "GE-05 w2.zero3.k2.do=t");
  EXPECT_EQ(waivers[2].message, "line");  // a part of it, without what acts
  for (const Waiver& waiver : waivers) EXPECT_EQ(waiver.expires, "2027-02-23");
}
TEST(WaiverDraft, OneOfMessagesThatDifferInNumbers) {
  ReadReport report;
  report.cases["w2.ddp"].causes = {{"GE-05", "rank 0: bytes [0, 16) of block 1 (gradients)"},
                                   {"GE-05", "rank 1: bytes [16, 32) of block 1 (gradients)"},
                                   {"GE-05", "rank 1: bytes [0, 16) of block 2 (weights)"}};
  const std::string draft = WaiverDraft(report, "2027-02-23");
  EXPECT_EQ(Times("[[waiver]]", draft), 2u) << draft;
  EXPECT_NE(draft.find("message = \") of block 1 (gradients)\""), std::string::npos) << draft;
}
TEST(WaiverDraft, OfAGreenReportHasNone) {
  ReadReport report;
  report.cases["w8.ddp"].status = "pass";
  EXPECT_TRUE(ParseWaivers(WaiverDraft(report, "2027-02-23"), "w.toml").waivers.empty());
}

// Messages of engines may be long: the work is bounded.
TEST(WaiverDraft, OfLongMessagesTakesNoLongTime) {
  ReadReport report = Read();
  report.cases.clear();
  const std::string same(200, 'x');
  for (int i = 0; i < 40; ++i) {
    ReadCase& c = report.cases["w2.ddp.k" + std::to_string(i)];
    c.causes.emplace_back("FS-05", same + std::string(200000, '0'));
  }
  const std::string draft = WaiverDraft(report, "2027-02-23");
  EXPECT_NE(draft.find("case = \"w2.ddp.*\"\nmessage = \"" + same), std::string::npos)
      << draft.substr(0, 2000);
}
TEST(WaiverDraft, AnIdOfTwoLinesIsAGlobOfOne) {
  ReadReport report = Read();
  report.cases.clear();
  report.cases["w2.our\nown"].causes.emplace_back("FS-05", "twice");
  EXPECT_NE(WaiverDraft(report, "2027-02-23").find("case = \"w2.our?own\""), std::string::npos)
      << WaiverDraft(report, "2027-02-23");
}
TEST(Waivers, AGlobOfEveryCaseIsTooBroad) {
  for (const char* glob : {"w*", "w?.*", "*.*", "w*.*"}) {
    RunReport report = Report({Failing("w8.zero3")});
    ApplyWaivers(report, {{Known(glob, "")}}, "2026-11-21");
    EXPECT_EQ(report.cases[0].status, Status::kFail) << glob;
    EXPECT_NE(Told(report.problems).find("it matches every case"), std::string::npos) << glob;
  }
}
TEST(Waivers, ExpireOnADayOfTheCalendar) {
  const auto parse = [](const std::string& day) {
    return ParseWaivers(
        "[[waiver]]\nrequirement = \"FS-05\"\ncase = \"w8.*\"\nreason = \"17\"\n"
        "expires = \"" +
            day + "\"\n",
        "w.toml");
  };
  EXPECT_EQ(parse("2028-02-29").waivers.size(), 1u);
  for (const char* day : {"2026-13-01", "2026-00-10", "2026-06-31", "2027-02-29", "2026-1-1"})
    EXPECT_THROW(parse(day), std::invalid_argument) << day;
}

}  // namespace
}  // namespace shardproof
