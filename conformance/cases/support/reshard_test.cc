// Each case of the profile reshard is one that the engine takes, in every leg; all changes that can
// be asked are.
#include "conformance/cases/support/reshard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "conformance/cases/support/fitted_profile.h"
#include "conformance/cases/support/random_cases.h"

namespace shardproof {
namespace {

class ReshardTest : public testing::Test {
 protected:
  std::vector<Case> Asked(const Supported& supported) const {
    return ReshardCases(spaces_, supported, 4, 1);
  }
  // What the first or second leg of a case has, over all of them.
  template <typename Value>
  static std::set<Value> Values(const std::vector<Case>& cases, Value (*of)(const Case&)) {
    std::set<Value> values;
    for (const Case& c : cases)
      for (const Case& leg : LegsOf(c)) values.insert(of(leg));
    return values;
  }

  Spaces kept_;
  std::vector<CaseFactors> spaces_ = FactorsUpTo(4, kept_);
};

TEST_F(ReshardTest, EveryCaseGoesThereAndBack) {
  const std::vector<Case> cases = Asked(AllOf(spaces_));
  EXPECT_GT(cases.size(), 40u);
  EXPECT_LT(cases.size(), 90u);
  std::set<std::string> ids;
  for (const Case& c : cases) {
    EXPECT_TRUE(ids.insert(Id(c)).second) << Id(c);
    EXPECT_EQ(ParseId(Id(c)), c) << Id(c);
    ASSERT_EQ(c.before.size(), 2u) << Id(c);
    Case back = c, first = c.before.front(), other = c.before.back();
    back.before.clear();
    for (Case* leg : {&back, &first, &other}) {
      leg->instances.front().script = "t";
      Derive(*leg);
    }
    EXPECT_EQ(back, first) << Id(c);
    EXPECT_NE(back, other) << Id(c);
  }
}

TEST_F(ReshardTest, AllThatPlacesParametersChanges) {
  const std::vector<Case> cases = Asked(AllOf(spaces_));
  EXPECT_EQ(Values<int32_t>(cases, [](const Case& c) { return c.world; }),
            (std::set<int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(Values<int32_t>(cases, [](const Case& c) { return c.instances[0].outer; }),
            (std::set<int32_t>{1, 2, 4}));
  EXPECT_EQ(Values<int32_t>(cases, [](const Case& c) { return c.instances[0].ep; }),
            (std::set<int32_t>{1, 2, 4}));
  for (const std::string& line : ReshardCoverage(spaces_, cases, cases))
    EXPECT_EQ(line.find("open"), std::string::npos) << line;
  // Each two strategies of one space, and those that deal whole parameters.
  const auto strategies = [](const Case& a, const Case& b) {
    return std::pair{a.instances[0].strategy.Text(), b.instances[0].strategy.Text()};
  };
  std::set<std::pair<std::string, std::string>> pairs;
  for (const Case& c : cases) pairs.insert(strategies(c.before[0], c.before[1]));
  for (const auto& pair : {std::pair{"no_shard", "optim_grads_params"},
                           {"optim", "optim_grads"},
                           {"layer_wise", "optim_grads_params"}})
    EXPECT_TRUE(pairs.contains(pair) || pairs.contains({pair.second, pair.first})) << pair.first;
}

TEST_F(ReshardTest, ASmallEngineIsAskedWhatItTakes) {
  const Supported some{
      {"strategies", {{{"strategy", {"optim"}}, {"microbatches", {"1", "2"}}}, {}, {}}}};
  const std::vector<Case> cases = Asked(some);
  EXPECT_GT(cases.size(), 3u);
  for (const Case& c : cases) {
    for (const Case& leg : LegsOf(c)) {
      const InstanceSpec& spec = leg.instances.front();
      EXPECT_EQ(spec.strategy, ShardingStrategy::kOptim) << Id(c);
      EXPECT_EQ(spec.optimizer, Optimizer::kSgd) << Id(c);
      EXPECT_EQ(spec.tp * spec.ep * spec.pp * spec.cp, 1) << Id(c);
    }
  }
}

// A step then has one sample for each rank: the world stays.
TEST_F(ReshardTest, AnEngineWithOneMicrobatchKeepsItsSamples) {
  const Supported some{{"strategies", {{{"strategy", {"optim", "no_shard"}}}, {}, {}}}};
  const std::vector<Case> cases = Asked(some);
  EXPECT_GT(cases.size(), 0u);
  for (const Case& c : cases) {
    for (const Case& leg : LegsOf(c)) EXPECT_EQ(leg.instances.front().microbatches, 1) << Id(c);
  }
}

TEST_F(ReshardTest, WhatIsNotJudgedIsOpen) {
  std::vector<Case> cases = Asked(AllOf(spaces_)), judged;
  for (const Case& c : cases) {
    if (c.world == c.before[1].world) judged.push_back(c);
  }
  std::string lines;
  for (const std::string& line : ReshardCoverage(spaces_, cases, judged)) lines += line + "\n";
  EXPECT_NE(lines.find("open: "), std::string::npos) << lines;
  EXPECT_NE(lines.find("world 4 and 2"), std::string::npos) << lines;
}

TEST_F(ReshardTest, NothingIsAskedOfNothing) { EXPECT_TRUE(Asked({}).empty()); }

}  // namespace
}  // namespace shardproof
