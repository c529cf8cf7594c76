#include "conformance/runner/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "conformance/cases/legs.h"

namespace shardproof {
namespace {

using ::testing::HasSubstr;

Options OnMpi(int ranks) {
  Options options;
  options.fabric = "mpi";
  options.profile = "smoke";
  options.ranks = ranks;
  return options;
}

TEST(Selection, CasesThatNeedMoreRanksAreLeftOutAndCounted) {
  std::vector<std::string> facts;
  const std::vector<Case> all = SelectCases(OnMpi(64), &facts);
  EXPECT_TRUE(facts.empty());
  const auto large =
      std::count_if(all.begin(), all.end(), [](const Case& c) { return c.world > 3; });
  const std::vector<Case> cases = SelectCases(OnMpi(3), &facts);
  EXPECT_GE(cases.size(), 8u);  // smoke has some for so few
  for (const Case& c : cases) EXPECT_LE(c.world, 3) << Id(c);
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(facts[0], "cases: " + std::to_string(cases.size()) + " selected, " +
                          std::to_string(large) + " not asked because they need more than 3 ranks");
}

TEST(Selection, ACaseThatIsAskedForAndNeedsMoreRanksIsAnError) {
  Options options = OnMpi(3);
  options.cases = {"w2.zero3", "w4.zero3"};
  try {
    SelectCases(options, nullptr);
    ADD_FAILURE();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("case w4.zero3 needs 4 ranks, there are 3"));
  }
  options.ranks = 4;
  EXPECT_EQ(SelectCases(options, nullptr).size(), 2u);
  options.ranks = 0;
  EXPECT_EQ(SelectCases(options, nullptr).size(), 2u) << "sim has any number of ranks";
}

// Seen on an H200: bf16 contributions of 3 ranks that cancel left 2^-9.
TEST(Selection, NcclIsNotAskedForAveragesItDoesNotPromise) {
  Options options;
  options.fabric = "nccl";
  options.ranks = 4;
  const auto error_of = [&](const char* id) -> std::string {
    options.cases = {id};
    try {
      SelectCases(options, nullptr);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_of("w3.ddp.avg.wire16"),
              HasSubstr("case w3.ddp.avg.wire16: it averages over 3 ranks"));
  EXPECT_THAT(error_of("w2.zero3.k3.avg.do=ts.then.w3.zero1.k2.avg.do=lt"),
              HasSubstr("over 3 ranks"));
  EXPECT_EQ(error_of("w3.ddp.wire16"), "") << "sums are exact";
  EXPECT_EQ(error_of("w4.ddp.avg.wire16"), "") << "so is 1/4";

  options.cases.clear();
  options.profile = "core";
  options.ranks = 8;  // worlds of 3, 5 and 6 ranks among them
  std::vector<std::string> facts;
  const std::vector<Case> asked = SelectCases(options, &facts);
  for (const Case& c : asked)
    for (const Case& leg : LegsOf(c))
      for (const InstanceSpec& spec : leg.instances)
        EXPECT_FALSE(spec.average_in_collective && c.illegal.empty() && DpCpSize(spec) % 3 == 0)
            << Id(c);
  EXPECT_THAT(facts, ::testing::Contains(HasSubstr("not asked because NCCL averages to the bit")));
}

}  // namespace
}  // namespace shardproof
