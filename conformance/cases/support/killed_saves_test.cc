// Each case of the profile crash is one that the engine takes, and each value is in a save.
#include "conformance/cases/support/killed_saves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "conformance/cases/support/random_cases.h"

namespace shardproof {
namespace {

class KilledSavesTest : public testing::Test {
 protected:
  std::vector<Case> Asked(const Supported& supported) const {
    return KilledSaves(spaces_, supported, 4, 1);
  }
  Spaces kept_;
  std::vector<CaseFactors> spaces_ = FactorsUpTo(4, kept_);
};

TEST_F(KilledSavesTest, OneLegIsKilledAndOneLoads) {
  const std::vector<Case> cases = Asked(AllOf(spaces_));
  EXPECT_GT(cases.size(), 40u);
  EXPECT_LT(cases.size(), 120u);
  std::set<std::string> ids;
  size_t elsewhere = 0, once = 0;
  for (const Case& c : cases) {
    EXPECT_TRUE(ids.insert(Id(c)).second) << Id(c);
    EXPECT_EQ(ParseId(Id(c)), c) << Id(c);
    ASSERT_EQ(c.before.size(), 1u) << Id(c);
    EXPECT_TRUE(c.before.front().killed);
    Case saver = c.before.front(), loader = c;
    once += saver.instances.front().script == "ts";
    loader.before.clear();
    saver.killed = false;
    for (Case* leg : {&saver, &loader}) {
      leg->instances.front().script = "t";
      Derive(*leg);
    }
    elsewhere += !(saver == loader);
  }
  EXPECT_GT(once, cases.size() / 5);
  EXPECT_GT(elsewhere, cases.size() / 5);
  EXPECT_LT(elsewhere, cases.size() / 2);
}

TEST_F(KilledSavesTest, EveryStrategyAndOptimizerSaves) {
  std::set<std::string> strategies, optimizers;
  for (const Case& c : Asked(AllOf(spaces_))) {
    strategies.insert(c.before.front().instances.front().strategy.Text());
    optimizers.insert(c.before.front().instances.front().optimizer.Text());
  }
  EXPECT_EQ(strategies.size(), 5u);
  EXPECT_GE(optimizers.size(), 3u);
}

TEST_F(KilledSavesTest, AnEngineIsAskedWhatItTakes) {
  Supported zero1;
  zero1["strategies"].values = {{"strategy", {"optim"}}, {"microbatches", {"1", "2"}}};
  const std::vector<Case> cases = Asked(zero1);
  ASSERT_FALSE(cases.empty());
  for (const Case& c : cases) {
    for (const Case& leg : LegsOf(c))
      EXPECT_EQ(leg.instances.front().strategy, ShardingStrategy::kOptim) << Id(c);
  }
  EXPECT_TRUE(Asked({}).empty());
}

TEST_F(KilledSavesTest, WhatWasNotJudgedIsOpen) {
  std::vector<Case> cases = Asked(AllOf(spaces_));
  for (const std::string& line : KilledSavesCoverage(spaces_, cases, cases))
    EXPECT_EQ(line.find("open"), std::string::npos) << line;
  const std::vector<std::string> lines = KilledSavesCoverage(spaces_, cases, {});
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines.front().find(": 0 judged of "), std::string::npos);
  EXPECT_NE(lines.front().find("; open: "), std::string::npos);
}

}  // namespace
}  // namespace shardproof
