// Thresholds of the written cases: each leaves out some steps and lets others update.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "conformance/cases/profiles.h"
#include "conformance/oracle/oracle.h"
#include "conformance/oracle/update.h"

namespace shardproof {
namespace {

void ExpectBoth(const Case& c) {
  const OracleRun run = RunOracle(c, 0);
  const auto count = [&](bool updated) {
    return std::count_if(run.calls.begin(), run.calls.end(), [&](const OracleCall& call) {
      return call.letter == 't' && call.updated == updated;
    });
  };
  EXPECT_GE(count(true), 2) << Id(c);
  EXPECT_GE(count(false), 1) << Id(c);
}

TEST(SkippedStepsTest, ThresholdsAreBetweenNorms) {
  int seen = 0, layer_wise = 0;
  for (const std::vector<Case>& cases :
       {NamedCases(), NamedScheduleCases(), NamedLayerWiseCases(), CrossCases()}) {
    for (const Case& c : cases) {
      if (c.instances[0].skip_norm == 0) continue;
      ++seen;
      layer_wise += c.instances[0].strategy == ShardingStrategy::kLayerWise ? 1 : 0;
      ExpectBoth(c);
    }
  }
  EXPECT_EQ(seen, 27);
  EXPECT_EQ(layer_wise, 4);
}

TEST(SkippedStepsTest, ANormThatIsNoNumberIsAboveEveryThreshold) {
  UpdateRule rule;
  EXPECT_FALSE(SkipsStep(rule, std::nan("")));
  rule.skip_norm = 1e30;
  EXPECT_TRUE(SkipsStep(rule, std::nan("")));
  EXPECT_FALSE(SkipsStep(rule, 1));
}

}  // namespace
}  // namespace shardproof
