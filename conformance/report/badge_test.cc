#include "conformance/report/badge.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "conformance/report/reports_for_test.h"

namespace shardproof {
namespace {

CaseReport With(Status status) {
  CaseReport c = Passing(StatusName(status));
  c.status = status;
  return c;
}

struct Row {
  std::vector<Status> cases;
  const char* words;
  const char* colour;
};
constexpr const char *kGreen = "#1a7f37", *kYellow = "#8a5a00", *kRed = "#b3261e";

TEST(Badge, OfEachVerdict) {
  using enum Status;
  const Row rows[] = {
      {{kPass, kPass, kUnsupported}, "conformant: 2 passed", kGreen},
      {{kPass, kBounded}, "conformant within bounds: 2 passed", kGreen},
      {{kPass, kWaived}, "conformant: 1 of 2 passed, 1 waived", kGreen},
      {{kPass, kPartial}, "conformant where judged: 1 of 2 passed", kYellow},
      {{kPass, kFail, kUnsupported}, "not conformant: 1 of 2 failed", kRed},
      {{kUnsupported}, "not conformant: nothing judged", kRed},
      {{kPass, kSuiteError}, "suite failed: 1 of 2 failed", kRed},
  };
  for (const Row& row : rows) {
    RunReport report = Report({});
    for (const Status status : row.cases) report.cases.push_back(With(status));
    const std::string svg = Badge(report);
    EXPECT_NE(svg.find(">" + std::string(row.words) + "</text>"), std::string::npos) << svg;
    EXPECT_NE(svg.find("fill=\"" + std::string(row.colour) + "\""), std::string::npos) << svg;
    for (const char* other : {kGreen, kYellow, kRed}) {
      if (other == row.colour) continue;
      EXPECT_EQ(svg.find(other), std::string::npos) << svg;
    }
  }
}

TEST(Badge, OfAReportThatWasRead) {
  ReadReport report;
  report.impl = "lib:a.so";
  report.verdict = "not conformant";
  report.cases["a"].status = "fail";
  report.cases["b"].status = "pass";
  report.problems = {"p"};
  EXPECT_NE(Badge(report).find(">not conformant: 1 of 2 failed</text>"), std::string::npos);
  EXPECT_NE(Badge(report).find("<title>lib:a.so: not conformant"), std::string::npos);
  EXPECT_EQ(VerdictLine(report), "not conformant: 1 pass, 1 fail, 1 problem");
  report.verdict = "fine";  // of a suite that this one does not know
  EXPECT_NE(Badge(report).find(kRed), std::string::npos);
  EXPECT_EQ(VerdictLine(report), "suite failed: 1 pass, 1 fail, 1 problem");
}

TEST(Badge, AnEngineWritesNothingIntoIt) {
  const std::string hostile =
      "lib:\"/><script>alert(1)</script><a href='javascript:x'>\x1b[2J\xff\u202e&";
  RunReport report = Report({Passing("w2.ddp")});
  report.impl = hostile + std::string(100000, '<');
  const std::string svg = Badge(report);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("<a "), std::string::npos);
  EXPECT_EQ(svg.find('\x1b'), std::string::npos);
  EXPECT_EQ(svg.find("\u202e"), std::string::npos);
  EXPECT_LT(svg.size(), 4000u);
  EXPECT_EQ(Times("<", svg), Times(">", svg));
  EXPECT_EQ(Times("<title>", svg), 1u);
  EXPECT_EQ(Times("\"", svg) % 2, 0u);
  EXPECT_EQ(Times("http", svg), 1u);  // the namespace: it refers to nothing
}

}  // namespace
}  // namespace shardproof
