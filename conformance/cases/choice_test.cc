#include "conformance/cases/choice.h"

#include <gtest/gtest.h>

#include "conformance/cases/words.h"

namespace shardproof {
namespace {

TEST(ChoiceTest, EachWordIsReadAsItIsWritten) {
  for (const std::string& word : Choice<ShardingStrategy>::Words()) {
    const auto choice = Choice<ShardingStrategy>::Parse(word);
    EXPECT_TRUE(choice.known());
    EXPECT_EQ(choice.Text(), word);
    EXPECT_EQ(choice, choice.value());
  }
}

TEST(ChoiceTest, DefaultIsTheFirstWord) {
  EXPECT_EQ(Choice<ShardingStrategy>{}, ShardingStrategy::kNoShard);
  EXPECT_EQ(Choice<GraphCapture>{}.Text(), "");
}

TEST(ChoiceTest, UnknownWordIsKeptAndIsNoEnumerator) {
  const auto choice = Choice<ShardingStrategy>::Parse("zero9");
  EXPECT_FALSE(choice.known());
  EXPECT_EQ(choice.Text(), "zero9");
  EXPECT_NE(choice, ShardingStrategy::kNoShard);
  EXPECT_NE(choice, Choice<ShardingStrategy>::Parse("zero8"));
  EXPECT_EQ(choice, Choice<ShardingStrategy>::Parse("zero9"));
  EXPECT_THROW(choice.value(), std::logic_error);
}

TEST(ChoiceTest, NoWordIsUnknownWhereItIsNoWord) {
  EXPECT_FALSE(Choice<ShardingStrategy>::Parse("").known());
  EXPECT_TRUE(Choice<GraphCapture>::Parse("").known());
}

}  // namespace
}  // namespace shardproof
