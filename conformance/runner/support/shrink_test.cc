// Engines here are rules that say which cases fail, and why.
#include "conformance/runner/support/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace shardproof {
namespace {

using Cause = std::string (*)(const InstanceSpec&);

CaseReport Report(const Case& c, const std::string& cause) {
  CaseReport report;
  report.id = Id(c);
  report.status = cause.empty() ? Status::kPass : Status::kFail;
  if (cause.empty()) return report;
  report.findings.emplace_back();
  report.findings.back().finding.requirement = cause;
  return report;
}

// Wrong with recomputation and tied weights together; otherwise wrong, with bf16.
std::string TwoBugs(const InstanceSpec& spec) {
  if (spec.recompute && spec.model.tied) return "FS-05";
  return spec.param_dtype == KnobDtype::kBf16 ? "FS-15" : "";
}

std::string LoadsWrong(const InstanceSpec& spec) {
  return spec.script.find('l') != std::string::npos ? "FS-27" : "";
}

// Wrong in five things together, and whenever it loads.
bool InFiveThings(const InstanceSpec& spec) {
  return spec.recompute && spec.model.tied && spec.param_dtype == KnobDtype::kBf16 &&
         spec.microbatches > 1 && spec.script.find('e') != std::string::npos;
}
std::string TwoWays(const InstanceSpec& spec) {
  return InFiveThings(spec) || !LoadsWrong(spec).empty() ? "FS-27" : "";
}

JudgeCases Judging(Cause cause) {
  return [cause](const std::vector<Case>& cases, const IsLast& last) {
    std::vector<CaseReport> reports;
    for (const Case& c : cases) {
      reports.push_back(Report(c, cause(c.instances.front())));
      if (last && last(reports.back())) break;
    }
    return reports;
  };
}

class ShrinkTest : public testing::Test {
 protected:
  // The smallest cases that drawn failures with this cause come to.
  std::vector<std::string> Smallest(Cause cause, const std::string& wanted) {
    const JudgeCases judge = Judging(cause);
    std::vector<std::string> ids;
    for (uint64_t seed = 1; seed <= 300; ++seed) {
      const DrawnCase drawn = Draw(from_, seed);
      const CaseReport report = judge({MakeCase(drawn)}, nullptr).front();
      if (CauseOf(report) != wanted) continue;
      const Shrunk shrunk = ShrinkDrawn(drawn, report, judge);
      EXPECT_EQ(CauseOf(shrunk.report), wanted);
      EXPECT_EQ(CauseOf(judge({ParseId(shrunk.report.id)}, nullptr).front()), wanted);
      ids.push_back(shrunk.report.id);
    }
    return ids;
  }

  Spaces kept_;
  const std::vector<CaseFactors> spaces_ = FactorsUpTo(4, kept_);
  const std::vector<DrawFrom> from_ = WhatToDrawFrom(spaces_, AllOf(spaces_), 4);
};

// Whichever case ends first: the first in order counts, and no further one need begin.
TEST(UpToLast, TheFirstInOrderIsTheLast) {
  for (const bool earlier_first : {false, true}) {
    UpToLast reports(5, [](const CaseReport& report) { return report.status == Status::kFail; });
    const auto add = [&](size_t place, Status status) {
      CaseReport report;
      report.id = std::to_string(place);
      report.status = status;
      reports.Add(place, report);
    };
    add(0, Status::kPass);
    EXPECT_FALSE(reports.Enough());
    add(earlier_first ? 1 : 2, Status::kFail);
    EXPECT_TRUE(reports.Enough());
    add(earlier_first ? 2 : 1, Status::kFail);
    const std::vector<CaseReport> taken = reports.Take();
    ASSERT_EQ(taken.size(), 2u);
    EXPECT_EQ(taken[1].id, "1");
  }
}

TEST(UpToLast, WithoutALastOneAllCount) {
  UpToLast reports(2, nullptr);
  reports.Add(1, {});
  EXPECT_FALSE(reports.Enough());
  reports.Add(0, {});
  EXPECT_EQ(reports.Take().size(), 2u);
}

TEST_F(ShrinkTest, NothingIsLeftButWhatItTakes) {
  const std::vector<std::string> ids = Smallest(TwoBugs, "FS-05");
  ASSERT_GE(ids.size(), 5u);
  for (const std::string& id : ids) {
    EXPECT_NE(id.find(".tied"), std::string::npos) << id;
    EXPECT_NE(id.find(".recompute"), std::string::npos) << id;
    EXPECT_LE(std::count(id.begin(), id.end(), '.'), 3) << id;
  }
}

TEST_F(ShrinkTest, AnotherCauseIsNotTakenForIt) {
  const std::vector<std::string> ids = Smallest(TwoBugs, "FS-15");
  ASSERT_GE(ids.size(), 5u);
  for (const std::string& id : ids) {
    const bool both =
        id.find(".tied") != std::string::npos && id.find(".recompute") != std::string::npos;
    EXPECT_FALSE(both) << id;
  }
}

TEST_F(ShrinkTest, ScriptsLoseTheCallsThatDoNotMatter) {
  const std::vector<std::string> ids = Smallest(LoadsWrong, "FS-27");
  ASSERT_GE(ids.size(), 5u);
  for (const std::string& id : ids) EXPECT_NE(id.find("do="), std::string::npos) << id;
  EXPECT_TRUE(std::any_of(ids.begin(), ids.end(), [](const std::string& id) {
    return id.ends_with("do=tsl") || id.find("do=stl") != std::string::npos ||
           id.find("do=slt") != std::string::npos || id.find("do=sl") != std::string::npos;
  }));
}

TEST_F(ShrinkTest, WhereOneStaysLongTheNextIsTried) {
  const JudgeCases judge = Judging(TwoWays);
  std::optional<FailedDraw> in_five_things, loads;
  for (uint64_t seed = 1; seed <= 20000 && !(in_five_things && loads); ++seed) {
    const DrawnCase drawn = Draw(from_, seed);
    const Case c = MakeCase(drawn);
    const InstanceSpec& spec = c.instances.front();
    const bool five = InFiveThings(spec), one = !LoadsWrong(spec).empty();
    if (five == one) continue;
    const FailedDraw failed{drawn, Report(c, "FS-27")};
    if (five && !in_five_things) in_five_things = failed;
    const bool longer = in_five_things && Id(c).size() > in_five_things->report.id.size();
    const bool elsewhere = in_five_things && drawn.from != in_five_things->drawn.from;
    if (one && longer && elsewhere) loads = failed;
  }
  ASSERT_TRUE(in_five_things && loads);
  const Shrunk alone = ShrinkSeveral({*in_five_things}, judge);
  EXPECT_EQ(std::ranges::count(alone.report.id, '.'), 6) << alone.report.id;
  const Shrunk both = ShrinkSeveral({*loads, *in_five_things}, judge);
  EXPECT_LE(std::ranges::count(both.report.id, '.'), 2) << both.report.id;
  EXPECT_EQ(both.from, loads->report.id);
  const Shrunk other = ShrinkSeveral({*loads}, judge);
  EXPECT_EQ(both.runs, alone.runs + other.runs);
  // A short one is enough, and three tries are.
  EXPECT_EQ(ShrinkSeveral({*loads, *loads}, judge).runs, other.runs);
  const FailedDraw& five = *in_five_things;
  EXPECT_EQ(ShrinkSeveral({five, five, five, five}, judge).runs, 3 * alone.runs);
  // One of another space comes before a second of the same.
  EXPECT_EQ(ShrinkSeveral({five, five, five, *loads}, judge).from, loads->report.id);
}

TEST_F(ShrinkTest, DrawsAreLegalAndOfTheSeedAlone) {
  int scripts = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Case c = MakeCase(Draw(from_, seed));
    EXPECT_TRUE(c.illegal.empty()) << Id(c);
    EXPECT_EQ(ParseId(Id(c)), c);
    EXPECT_EQ(Id(MakeCase(Draw(from_, seed))), Id(c));
    scripts += !Draw(from_, seed).script.empty();
  }
  EXPECT_GT(scripts, 80);
}

}  // namespace
}  // namespace shardproof
