#include "conformance/report/html/page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "conformance/report/html/page_parts.h"

namespace shardproof {
namespace {

using nlohmann::json;

std::string SentenceOf(std::string_view id) { return "sentence of " + std::string(id); }

CaseReport Failing(const std::string& id, const std::string& message) {
  CaseReport c;
  c.id = id;
  c.status = Status::kFail;
  c.judged = {"GE-05", "GE-01"};
  c.replay = "shardproof replay --case " + id;
  Finding finding;
  finding.requirement = "GE-05";
  finding.rank = 1;
  finding.message = message;
  c.findings.push_back({finding, "", false});
  c.drawings[0] = R"({"lanes":[[0,"host"]],"nodes":[[0,7,0,1,"compute","a name"]],"links":[]})";
  return c;
}

RunReport ReportOf(std::vector<CaseReport> cases) {
  RunReport report;
  report.impl = "lib:x.so";
  report.cases = std::move(cases);
  return report;
}

json DataOf(const std::string& page) {
  EXPECT_TRUE(page.starts_with(kBeforeData) && page.ends_with(kAfterData));
  return json::parse(
      page.substr(kBeforeData.size(), page.size() - kBeforeData.size() - kAfterData.size()));
}

std::string Only(const RunReport& report) {
  const auto pages = HtmlPages(report, SentenceOf);
  EXPECT_EQ(pages.size(), 1u);
  EXPECT_EQ(pages[0].first, "report.html");
  return pages[0].second;
}

TEST(Page, SaysOfWhatIsBrokenWhyAndHowToMendIt) {
  RunReport report = ReportOf({Failing("w2.zero3", "they race")});
  report.engine = "mine 2.1";
  report.cases[0].shrink = "shardproof shrink --case w2.zero3";
  report.cases[0].notes = {"k* is 2"};
  report.cases[0].printed[1] = "step 1\nloss nan\n";
  const auto lessons = [](std::string_view id) {
    return Lesson{"why of " + std::string(id), "", "fix of " + std::string(id)};
  };
  const json data = DataOf(HtmlPages(report, SentenceOf, lessons)[0].second);
  EXPECT_EQ(data["lessons"],
            json::parse(R"({"GE-05":{"why":"why of GE-05","fix":"fix of GE-05"}})"));
  EXPECT_NE(data["what"].get<std::string>().find("mine 2.1"), std::string::npos);
  const json& row = data["cases"][0];
  const auto texts = [&](const char* name) {
    std::string all;
    for (const json& place : row[name])
      all += data["strings"][place.get<size_t>()].get<std::string>() + "|";
    return all;
  };
  EXPECT_EQ(texts("notes"), "k* is 2|");
  EXPECT_EQ(texts("printed"), "rank 1 printed:|  step 1|  loss nan|");
  EXPECT_EQ(data["strings"][row["shrink"].get<size_t>()], "shardproof shrink --case w2.zero3");
}

TEST(Page, HasCasesFindingsAndTheirDrawings) {
  const json data = DataOf(Only(ReportOf({Failing("w2.zero3.k2", "they race")})));
  const json& row = data["cases"][0];
  EXPECT_EQ(row["id"], "w2.zero3.k2");
  EXPECT_EQ(row["status"], "fail");
  EXPECT_EQ(data["groups"][row["group"].get<size_t>()], "zero3");
  const json& told = row["told"][0];
  EXPECT_EQ(data["strings"][told["message"].get<size_t>()], "they race");
  EXPECT_EQ(data["strings"][told["drawing"]["nodes"][0][5].get<size_t>()], "a name");
  EXPECT_EQ(data["kind"], "fail");
  EXPECT_EQ(data["sentences"]["GE-05"], "sentence of GE-05");
}

TEST(Page, MatrixCountsCasesByRequirementAndGroup) {
  CaseReport open = Failing("w2.ddp", "");
  open.status = Status::kPartial;
  open.findings.clear();
  open.judged = {"GE-01"};
  open.not_checkable = {{"GE-05", "no memory"},
                        {"FS-04", "no hooks", NotCheckable::Kind::kNotAsked}};
  CaseReport warned = Failing("w2.ddp.k2", "");
  warned.findings[0].warning = true;
  const json data =
      DataOf(Only(ReportOf({Failing("w2.zero3", ""), Failing("w4.zero3", ""), open, warned})));
  EXPECT_EQ(data["groups"], json({"ddp", "zero3"}));
  // Judged, failed, excused, not judged; for ddp, then zero3.
  EXPECT_EQ(data["matrix"], json::parse(R"([["GE-01",[[2,0,0,0],[2,0,0,0]]],
                                            ["GE-05",[[0,0,1,1],[0,2,0,0]]]])"));
}

TEST(Page, TextOfOthersNeverLeavesItsPlace) {
  const std::string hostile = "</script><script>alert(1)</script><!-- & \xff \x1b[2J \u202e";
  RunReport report = ReportOf({Failing("w2.zero3." + hostile, hostile)});
  report.impl = report.profile = hostile;
  report.facts = report.problems = {hostile};
  report.cases[0].findings[0].finding.requirement = hostile;
  report.cases[0].replay = hostile;
  const std::string page = Only(report);
  const std::string island =
      page.substr(kBeforeData.size(), page.size() - kBeforeData.size() - kAfterData.size());
  for (const char* bad : {"<", ">", "&", "\x1b", "\u202e", "\xff"})
    EXPECT_EQ(island.find(bad), std::string::npos) << bad;
  EXPECT_NE(DataOf(page)["cases"][0]["id"].get<std::string>().find("</script>"), std::string::npos);
}

TEST(Page, AllowsNothingThatItDoesNotName) {
  const std::string before(kBeforeData);
  EXPECT_NE(before.find("default-src 'none'; style-src 'sha256-"), std::string::npos);
  EXPECT_NE(before.find("script-src 'sha256-"), std::string::npos);
  EXPECT_EQ(before.find("unsafe"), std::string::npos);
  EXPECT_EQ(before.find("http:"), std::string::npos);
  EXPECT_EQ(before.find("https:"), std::string::npos);
}

TEST(Page, WhatHasNoRoomStandsInFurtherPages) {
  std::vector<CaseReport> cases;
  for (int i = 0; i < 40; ++i)
    cases.push_back(
        Failing("w2.zero3.k" + std::to_string(i), std::string(1000, 'a') + std::to_string(i)));
  PageLimits limits;
  limits.bytes = 20'000;
  const auto pages = HtmlPages(ReportOf(cases), SentenceOf, nullptr, limits);
  ASSERT_GT(pages.size(), 2u);
  EXPECT_EQ(pages[1].first, "report-2.html");
  const json first = DataOf(pages[0].second);
  ASSERT_EQ(first["cases"].size(), 40u);  // all of them, some with their findings elsewhere
  for (size_t i = 0; i < 40; ++i) {
    json row = first["cases"][i];
    const json page = DataOf(pages[row.value("page", 1u) - 1].second);
    if (row.contains("page")) {
      EXPECT_TRUE(row["told"].empty());
      for (const json& other : page["cases"])
        if (other["id"] == row["id"]) row = other;
    }
    ASSERT_EQ(row["told"].size(), 1u) << i;
    const std::string message = page["strings"][row["told"][0]["message"].get<size_t>()];
    EXPECT_EQ(message, cases[i].findings[0].finding.message);
  }
  for (const auto& [name, text] : pages)
    EXPECT_LT(text.size(), limits.bytes + 4000 + kBeforeData.size() + kAfterData.size()) << name;
}

TEST(Page, DrawsTheSmallestCasesOfARequirement) {
  PageLimits limits;
  limits.drawings_of_a_requirement = 1;
  const auto pages = HtmlPages(ReportOf({Failing("w2.ddp.k2", ""), Failing("w2.zero3", "")}),
                               SentenceOf, nullptr, limits);
  const json data = DataOf(pages[0].second);
  EXPECT_FALSE(data["cases"][0]["told"][0].contains("drawing"));
  EXPECT_TRUE(data["cases"][1]["told"][0].contains("drawing"));
}

TEST(Page, IsTheSameEachTime) {
  const RunReport report = ReportOf({Failing("w2.zero3", "x"), Failing("w2.ddp", "y")});
  EXPECT_EQ(HtmlPages(report, SentenceOf), HtmlPages(report, SentenceOf));
  RunReport broken = report;
  broken.cases[0].drawings[0] = "{";
  EXPECT_FALSE(DataOf(Only(broken))["cases"][0]["told"][0].contains("drawing"));
}

}  // namespace
}  // namespace shardproof
