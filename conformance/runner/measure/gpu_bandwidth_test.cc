// The program on a machine without a GPU: its figures mean nothing, its path and arithmetic do.
#include "conformance/runner/measure/gpu_bandwidth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "conformance/runner/nccl/process_fabric_for_test.h"

namespace shardproof {
namespace {

using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(BusBandwidth, IsOfTheBytesThatLeaveARank) {
  // Half of 2e9 bytes in a second at two ranks, three quarters at four.
  EXPECT_DOUBLE_EQ(BusBandwidth(2'000'000'000, 2, 1000), 1.0);
  EXPECT_DOUBLE_EQ(BusBandwidth(2'000'000'000, 4, 1000), 1.5);
}

TEST(BandwidthTable, SlowestAndFastestRoundStandBesideTheMedian) {
  const std::string table = BandwidthTable({}, {{"all_gather", 4'000'000, {1.0, 2.0, 4.0}}});
  EXPECT_THAT(table, HasSubstr("2 ranks"));
  EXPECT_THAT(table, HasSubstr("all_gather        4000000 bytes      2.000 ms     1.00 GB/s "
                               "(0.50 to 2.00)"));
}

TEST(RunBandwidth, BothCollectivesAtEachSize) {
  BandwidthOptions options;
  options.ranks = 3;
  options.sizes = {12, 1200};
  std::vector<std::string> facts;
  const std::vector<BandwidthRow> rows = RunBandwidth(options, ProcessKitForTest(), &facts);
  ASSERT_THAT(rows, SizeIs(4));
  EXPECT_EQ(rows[1].collective, "all_gather");
  EXPECT_EQ(rows[1].size, 1200u);
  EXPECT_EQ(rows[2].collective, "reduce_scatter");
  for (const BandwidthRow& row : rows) {
    EXPECT_THAT(row.milliseconds, SizeIs(3));
    EXPECT_THAT(row.milliseconds, Each(Gt(0)));
  }
  EXPECT_THAT(facts, ::testing::Not(::testing::IsEmpty()));
}

TEST(RunBandwidth, ASizeThatRanksCannotShareIsNamed) {
  BandwidthOptions options;
  options.sizes = {1 << 20, 1'000'002};
  std::vector<std::string> facts;
  try {
    RunBandwidth(options, ProcessKitForTest(), &facts);
    ADD_FAILURE() << "no error";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("size 1000002"));
  }
}

}  // namespace
}  // namespace shardproof
