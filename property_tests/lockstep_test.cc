#include "property_tests/lockstep.h"

#include <gtest/gtest.h>

#include <sstream>

namespace shardproof {
namespace {

std::shared_ptr<const CaseSpace> Space() {
  return std::make_shared<const CaseSpace>(std::vector<int32_t>{1, 2, 4, 8});
}

// One rank that talks to itself; other ranks fail or draw as the test says.
class OneRank : public RankAgreement {
 public:
  int rank() const override { return 0; }
  uint64_t FromRankZero(uint64_t value) override { return value ^ astray; }
  bool OnAllRanks(bool holds) override { return holds; }
  uint64_t astray = 0;
};

TEST(LockstepTest, FailureShrinksToTheSimplestCase) {
  OneRank ranks;
  std::ostringstream log;
  PropertyOptions options;
  options.log = &log;
  std::string smallest;
  const auto holds = [](const Case& c) {
    return c.world < 4 || c.instances[0].strategy != ShardingStrategy::kOptimGradsParams ||
           !c.instances[0].recompute;
  };
  EXPECT_FALSE(CheckInLockstep("no recompute with zero3", ranks, GenCase(Space()), holds, options,
                               &smallest));
  EXPECT_EQ(smallest, "w4.zero3.recompute");
  EXPECT_NE(log.str().find("RC_PARAMS=\"seed="), std::string::npos);
}

TEST(LockstepTest, ExceptionIsAFailure) {
  OneRank ranks;
  std::ostringstream log;
  PropertyOptions options;
  options.log = &log;
  std::string smallest;
  const auto holds = [](const Case&) -> bool { throw std::runtime_error("broken"); };
  EXPECT_FALSE(
      CheckInLockstep("nothing works", ranks, GenCase(Space()), holds, options, &smallest));
  EXPECT_EQ(smallest, "w1.ddp");
}

TEST(LockstepTest, PropertyThatHoldsFindsNothing) {
  OneRank ranks;
  std::ostringstream log;
  PropertyOptions options;
  options.log = &log;
  int evaluations = 0;
  const auto holds = [&](const Case&) { return ++evaluations > 0; };
  EXPECT_TRUE(CheckInLockstep("anything goes", ranks, GenCase(Space()), holds, options));
  EXPECT_EQ(evaluations, 100);
}

TEST(LockstepTest, RankThatDrewAnotherCaseIsAnError) {
  OneRank ranks;
  ranks.astray = 1;
  std::ostringstream log;
  PropertyOptions options;
  options.log = &log;
  int evaluations = 0;
  const auto holds = [&](const Case&) { return ++evaluations > 0; };
  EXPECT_FALSE(CheckInLockstep("astray", ranks, GenCase(Space()), holds, options));
  EXPECT_EQ(evaluations, 0);
  EXPECT_NE(log.str().find("drew another case than rank 0"), std::string::npos);
}

}  // namespace
}  // namespace shardproof
