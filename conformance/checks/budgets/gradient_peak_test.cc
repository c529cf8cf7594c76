#include <gtest/gtest.h>

#include "conformance/checks/budgets/budgets.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/checks/testing/mini_schedule.h"

namespace shardproof {
namespace {

CheckResult Checked(const MiniFaults& faults, int32_t layers,
                    ShardingStrategy strategy = ShardingStrategy::kOptimGradsParams) {
  const Case c = MiniCase(2, [&](InstanceSpec& spec) {
    spec.model.layers = layers;
    spec.strategy = strategy;
    spec.microbatches = 2;
  });
  return CheckGradientPeak(RunMini(c, faults).run);
}

MiniFaults Late(bool reduce, bool free) {
  MiniFaults faults;
  faults.late_reduce = reduce;
  faults.late_free = free;
  return faults;
}

TEST(GradientPeak, AGoodRunHasNoFinding) {
  const CheckResult result = Checked({}, 4);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("BU-01"));
  EXPECT_TRUE(result.judged.contains("BU-02"));
}

TEST(GradientPeak, UnitsThatWaitForTheEndOfBackward) {
  const CheckResult result = Checked(Late(true, false), 3);
  EXPECT_EQ(FoundIn(result), "BU-01");
  ASSERT_FALSE(result.findings.empty());
  EXPECT_NE(result.findings[0].seen.find("layers.2"), std::string::npos) << result.findings[0].seen;
  EXPECT_EQ(FoundIn(Checked(Late(true, false), 3, ShardingStrategy::kOptimGrads)), "BU-01");
}

TEST(GradientPeak, AUnitIsReducedWithItsLastParameter) {
  for (const int32_t rank : {-1, 1}) {
    MiniFaults faults;
    faults.late_rest = true;
    faults.rank = rank;
    const CheckResult result = Checked(faults, 3);
    EXPECT_EQ(FoundIn(result), "BU-01") << rank;
    ASSERT_FALSE(result.findings.empty());
    EXPECT_EQ(result.findings[0].rank, std::max(rank, 0));
  }
}

// A bucket may reach into the next unit.
TEST(GradientPeak, OneUnitMayWait) { EXPECT_EQ(FoundIn(Checked(Late(true, true), 2)), ""); }

TEST(GradientPeak, FullGradientsThatStayAfterTheirReduction) {
  EXPECT_EQ(FoundIn(Checked(Late(false, true), 4)), "BU-02");
  EXPECT_EQ(FoundIn(Checked(Late(false, true), 3)), "") << "two more than the one in backward";
}

TEST(GradientPeak, WholeGradientsAreNoMatter) {
  const CheckResult result = Checked(Late(true, true), 4, ShardingStrategy::kOptim);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.empty());
}

// Published designs of the 1F1B schedule differ in where they reduce (EP-19, EP-20).
TEST(GradientPeak, TheScheduleHasRulesOfItsOwn) {
  EXPECT_TRUE(CheckGradientPeak(RunSchedule(ScheduleCase(4, 2)).run).judged.empty());
}

TEST(GradientPeak, WithoutMemoryNothingIsSaid) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.traces[1].provides.memory = false;
  const CheckResult result = CheckGradientPeak(mini.run);
  EXPECT_TRUE(result.judged.empty());
  EXPECT_EQ(NotCheckableIn(result), (std::set<std::string>{"BU-01", "BU-02"}));
}

}  // namespace
}  // namespace shardproof
