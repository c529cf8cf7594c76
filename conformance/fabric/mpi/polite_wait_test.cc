#include "conformance/fabric/mpi/polite_wait.h"

#include <gtest/gtest.h>

namespace shardproof::mpi {
namespace {

using namespace std::chrono_literals;

constexpr int32_t kMoreThanCores = 1 << 20;

TEST(PoliteWait, NapsGrowWithTheWait) {
  const PoliteWait wait(1);
  EXPECT_EQ(wait.NapAfter(0us), 30us);
  EXPECT_EQ(wait.NapAfter(1000us), 250us);
  EXPECT_EQ(wait.NapAfter(1s), 2000us);
}

TEST(PoliteWait, MoreRanksThanCoresLookLessOften) {
  EXPECT_EQ(PoliteWait(kMoreThanCores).NapAfter(0us), 100us);
}

TEST(PoliteWait, SteadyNapsAreAlike) {
  for (const int32_t ranks : {1, kMoreThanCores}) {
    const PoliteWait wait(ranks, PoliteWait::kSteadily);
    EXPECT_EQ(wait.NapAfter(0us), 100us);
    EXPECT_EQ(wait.NapAfter(1s), 100us);
  }
}

}  // namespace
}  // namespace shardproof::mpi
