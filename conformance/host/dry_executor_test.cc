#include "conformance/host/dry_executor.h"

#include <gtest/gtest.h>

#include <numeric>

namespace shardproof {
namespace {

TEST(DryExecutorTest, TokensChooseAllExpertsEquallyOften) {
  EXPECT_EQ(EvenRows(8, 2, 4, 0), (std::vector<int64_t>{4, 4, 4, 4}));
  EXPECT_EQ(EvenRows(8, 1, 3, 0), (std::vector<int64_t>{3, 3, 2}));
  const std::vector<int64_t> many = EvenRows(8, 2, 64, 0);
  EXPECT_EQ(std::accumulate(many.begin(), many.end(), int64_t{0}), 16);
  EXPECT_EQ(EvenRows(8, 2, 4, 3), (std::vector<int64_t>{3, 3, 3, 3})) << "no more than a capacity";
}

// Where little is touched it is touched, else nothing is.
TEST(DryExecutorTest, LargeOperationsDoNothing) {
  DryExecutor executor;
  std::vector<std::byte> large(DryExecutor::kMostBytes + 1), small(16);
  executor.Fill(0, large.data(), 0xFF, large.size());
  executor.Fill(0, small.data(), 0xFF, small.size());
  EXPECT_EQ(large[0], std::byte{0});
  EXPECT_EQ(small[0], std::byte{0xFF});
}

}  // namespace
}  // namespace shardproof
