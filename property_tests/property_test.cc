#include "property_tests/property.h"

#include <gtest/gtest.h>

#include <sstream>

namespace shardproof {
namespace {

// How much of the log was written when the first shrink was tried.
TEST(PropertyTest, SeedIsPrintedBeforeShrinkingStarts) {
  std::ostringstream log;
  PropertyOptions options;
  options.log = &log;
  options.seed = 12345;
  std::string before_shrinking;
  bool failed = false;
  const bool held = CheckProperty(
      "small numbers",
      [&](int value) {
        if (failed && before_shrinking.empty()) before_shrinking = log.str();
        failed = failed || value >= 10;
        RC_ASSERT(value < 10);
      },
      options);
  EXPECT_FALSE(held);
  EXPECT_NE(before_shrinking.find("property 'small numbers' fails at evaluation"),
            std::string::npos);
  EXPECT_NE(before_shrinking.find("RC_PARAMS=\"seed=12345"), std::string::npos);
}

TEST(PropertyTest, CounterexampleIsMinimal) {
  std::ostringstream log;
  PropertyOptions options;
  options.log = &log;
  int smallest = 1 << 30;
  CheckProperty(
      "small numbers",
      [&](int value) {
        if (value >= 10) smallest = std::min(smallest, value);
        RC_ASSERT(value < 10);
      },
      options);
  EXPECT_EQ(smallest, 10);
}

TEST(PropertyTest, SameNameSameValues) {
  std::ostringstream log;
  PropertyOptions options;
  options.log = &log;
  std::vector<int> first, second;
  for (std::vector<int>* values : {&first, &second}) {
    EXPECT_TRUE(CheckProperty(
        "anything", [&](int value) { values->push_back(value); }, options));
  }
  EXPECT_EQ(first, second);
  EXPECT_EQ(first.size(), 100u);
}

class WaivedPropertyTest : public ::testing::Test {
 protected:
  // Fails from `limit` on.
  bool Check(int limit, const PropertyWaiver& waiver) {
    PropertyOptions options;
    options.log = &log_;
    return CheckWaivedProperty(
        "small numbers", waiver, [limit](int value) { RC_ASSERT(value < limit); }, options);
  }
  std::ostringstream log_;
};

TEST_F(WaivedPropertyTest, FailsAtItsCounterexample) {
  EXPECT_TRUE(Check(10, {"(10)", "numbers of two digits are not supported"}));
  EXPECT_NE(log_.str().find("is waived: numbers of two digits"), std::string::npos);
}

TEST_F(WaivedPropertyTest, AnotherCounterexampleIsNotWaived) {
  EXPECT_FALSE(Check(9, {"(10)", "numbers of two digits are not supported"}));
  EXPECT_NE(log_.str().find("is waived at (10), but fails at (9)"), std::string::npos);
}

TEST_F(WaivedPropertyTest, UnexpectedPassIsAnError) {
  EXPECT_FALSE(Check(1 << 30, {"(10)", "numbers of two digits are not supported"}));
  EXPECT_NE(log_.str().find("holds: remove its waiver"), std::string::npos);
}

TEST_F(WaivedPropertyTest, ReasonIsNeeded) { EXPECT_FALSE(Check(10, {"(10)", ""})); }

}  // namespace
}  // namespace shardproof
