// Each case of the profile oom is one that the engine takes, and each value is in one.
#include "conformance/cases/support/starved_cases.h"

#include <gtest/gtest.h>

#include <set>

#include "conformance/cases/support/random_cases.h"

namespace shardproof {
namespace {

class StarvedCasesTest : public testing::Test {
 protected:
  std::vector<Case> Asked(const Supported& supported) const {
    return StarvedCases(spaces_, supported, 4, 1);
  }
  Spaces kept_;
  std::vector<CaseFactors> spaces_ = FactorsUpTo(8, kept_);
};

TEST_F(StarvedCasesTest, EachValueIsInOne) {
  const std::vector<Case> cases = Asked(AllOf(spaces_));
  std::set<std::string> ids;
  for (const Case& c : cases) {
    EXPECT_TRUE(ids.insert(Id(c)).second) << Id(c);
    EXPECT_TRUE(c.starved);
    EXPECT_EQ(ParseId(Id(c)), c) << Id(c);
  }
  for (const CaseFactors& space : spaces_) {
    const ValueMask mask = AllValuesOf(*space.problem);
    for (size_t factor = 0; factor < mask.size(); ++factor) {
      std::set<int> seen;
      for (const Case& c : cases) {
        if (c.instances.front().strategy == ShardingStrategy::kLayerWise ||
            space.name != "layer_wise")
          seen.insert(space.row_of(c)[factor]);
      }
      for (size_t value = 0; value < mask[factor].size(); ++value) {
        EXPECT_TRUE(seen.contains(static_cast<int>(value)))
            << space.name << " " << space.problem->factors[factor].name << " "
            << space.problem->factors[factor].values[value];
      }
    }
  }
}

TEST_F(StarvedCasesTest, AnEngineIsAskedWhatItTakes) {
  Supported zero1;
  zero1["strategies"].values = {{"strategy", {"optim"}}, {"microbatches", {"1", "2"}}};
  const std::vector<Case> cases = Asked(zero1);
  ASSERT_FALSE(cases.empty());
  for (const Case& c : cases)
    EXPECT_EQ(c.instances.front().strategy, ShardingStrategy::kOptim) << Id(c);
  EXPECT_TRUE(Asked({}).empty());
}

TEST_F(StarvedCasesTest, WhatWasNotJudgedIsOpen) {
  const std::vector<Case> cases = Asked(AllOf(spaces_));
  for (const std::string& line : StarvedCoverage(spaces_, cases, cases))
    EXPECT_EQ(line.find("open"), std::string::npos) << line;
  const std::vector<std::string> lines = StarvedCoverage(spaces_, cases, {});
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines.front().find(": 0 judged of "), std::string::npos);
  EXPECT_NE(lines.front().find("; open: w"), std::string::npos);
}

}  // namespace
}  // namespace shardproof
