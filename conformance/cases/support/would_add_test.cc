// Cases with one more value are those that an engine with it is asked.
#include "conformance/cases/support/would_add.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/cases/support/fitted_profile.h"

namespace shardproof {
namespace {

class WouldAddTest : public testing::Test {
 protected:
  std::vector<WouldAdd> Values(const std::vector<Case>& listed) const {
    return WhatValuesWouldAdd(spaces_, Ddp(), listed, 2, 4, 1);
  }
  static Supported Ddp() {
    Supported ddp;
    ddp["strategies"].values = {{"strategy", {"no_shard"}}, {"microbatches", {"1", "2"}}};
    return ddp;
  }
  static size_t CasesOf(const std::vector<WouldAdd>& values, const std::string& factor,
                        const std::string& value) {
    const auto at = std::find_if(values.begin(), values.end(), [&](const WouldAdd& one) {
      return one.factor == factor && one.value == value;
    });
    return at == values.end() ? 0 : at->cases;
  }

  Spaces kept_;
  std::vector<CaseFactors> spaces_ = FactorsUpTo(4, kept_);
};

TEST_F(WouldAddTest, CountsTheCasesThatAnEngineWithItIsAsked) {
  const std::vector<WouldAdd> values = Values({});
  Supported more = Ddp();
  more["strategies"].values["strategy"].insert("optim");
  size_t with = 0;
  for (const Case& c : FittedCases(spaces_, more, 2, 4, 1))
    with += c.instances.front().strategy == ShardingStrategy::kOptim;
  EXPECT_GT(with, 3u);
  EXPECT_EQ(CasesOf(values, "strategy", "optim"), with);
  EXPECT_EQ(CasesOf(values, "strategy", "no_shard"), 0u) << "it takes that";
  EXPECT_TRUE(std::is_sorted(values.begin(), values.end(),
                             [](const auto& a, const auto& b) { return a.cases > b.cases; }));
}

TEST_F(WouldAddTest, WhatNeedsSomethingElseTooAddsNothing) {
  // DDP has no shards for a second level to share out.
  EXPECT_EQ(CasesOf(Values({}), "outer_strategy", "optim"), 0u);
  EXPECT_TRUE(WhatValuesWouldAdd(spaces_, {}, {}, 2, 4, 1).empty());
}

TEST_F(WouldAddTest, ListedCasesThatWouldFitCount) {
  const size_t before = CasesOf(Values({}), "tied", "1");
  const std::vector<Case> listed{ParseId("w4.ddp.tied.do=ttstltt"), ParseId("w4.ddp.do=tttt"),
                                 ParseId("w4.ddp.tied.adamw.do=ttstltt")};
  EXPECT_EQ(CasesOf(Values(listed), "tied", "1"), before + 1);
}

TEST_F(WouldAddTest, ALineForEachSpace) {
  const std::vector<std::string> lines =
      WouldAddLines({{"strategies", "tied", "1", 9}, {"strategies", "biases", "1", 7}});
  EXPECT_EQ(
      lines,
      std::vector<std::string>{
          "in how many cases one more value of strategies would be asked: tied 1 9, biases 1 7"});
}

}  // namespace
}  // namespace shardproof
