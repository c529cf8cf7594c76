// Golden tables: computed by hand from the published rule of the deal (smallest first, back and
// forth), not by this code.
#include "reference/layerwise/ownership.h"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

#include "reference/layerwise/fixtures_for_test.h"

namespace reference {
namespace {

using Names = std::vector<std::vector<std::string>>;

Names NamesOf(const RankLists& lists) {
  Names names;
  for (const ParamIds& list : lists) {
    names.emplace_back();
    for (int32_t param : list) names.back().push_back(kFiveLinear[static_cast<size_t>(param)].name);
  }
  return names;
}

std::vector<int64_t> ElementsOf(const RankLists& lists) {
  std::vector<int64_t> sums;
  for (const ParamIds& list : lists) {
    sums.push_back(0);
    for (int32_t param : list) sums.back() += kFiveLinear[static_cast<size_t>(param)].facts().numel;
  }
  return sums;
}

ParamFacts Sized(int32_t param, int64_t numel, bool expert = false) {
  ParamFacts facts;
  facts.param = param;
  facts.numel = numel;
  facts.expert = expert;
  return facts;
}

ParamGroup GroupOf(const std::vector<int64_t>& sizes, int32_t first = 0, bool expert = false) {
  ParamGroup group{"group", {}};
  for (int64_t size : sizes) {
    group.params.push_back(Sized(first + static_cast<int32_t>(group.params.size()), size, expert));
  }
  return group;
}

TEST(Deal, TenParametersOverFourRanks) {
  std::vector<int64_t> ascending(10);
  std::iota(ascending.begin(), ascending.end(), 100);
  EXPECT_EQ(DealPingPong({GroupOf(ascending)}, 4, 1).dense,
            (RankLists{{0, 7, 8}, {1, 6, 9}, {2, 5}, {3, 4}}));
}

TEST(Deal, FiveLinearLayersOverTwoFourAndEightRanks) {
  const RankLists two = DealPingPong(FiveLinearGroups(), 2, 1).dense;
  EXPECT_EQ(NamesOf(two), (Names{{"b5", "b2", "b1", "w3", "w2"}, {"b4", "b3", "w5", "w4", "w1"}}));
  EXPECT_EQ(ElementsOf(two), (std::vector<int64_t>{2394, 4424}));

  const RankLists four = DealPingPong(FiveLinearGroups(), 4, 1).dense;
  EXPECT_EQ(NamesOf(four),
            (Names{{"b5", "w3", "w2"}, {"b4", "w4", "w1"}, {"b3", "w5"}, {"b2", "b1"}}));
  EXPECT_EQ(ElementsOf(four), (std::vector<int64_t>{2314, 4240, 184, 80}));

  const RankLists eight = DealPingPong(FiveLinearGroups(), 8, 1).dense;
  EXPECT_EQ(NamesOf(eight),
            (Names{{"b5"}, {"b4"}, {"b3"}, {"b2"}, {"b1"}, {"w5"}, {"w4", "w1"}, {"w3", "w2"}}));
  EXPECT_EQ(ElementsOf(eight), (std::vector<int64_t>{10, 16, 24, 32, 48, 160, 4224, 2304}));
}

TEST(Deal, EqualSizesKeepTheOrderOfGroupsThenOfTheModel) {
  const Deal deal = DealPingPong({GroupOf({8, 8}, 4), GroupOf({8, 8}, 0)}, 2, 1);
  EXPECT_EQ(deal.dense, (RankLists{{4, 1}, {5, 0}}));
}

TEST(Deal, ExpertsHaveACursorOfTheirOwn) {
  const std::vector<ParamGroup> groups{GroupOf({1, 3, 5}, 0), GroupOf({2, 4, 6}, 10, true)};
  const Deal deal = DealPingPong(groups, 2, 3);
  EXPECT_EQ(deal.dense, (RankLists{{0}, {1, 2}}));
  EXPECT_EQ(deal.expert, (RankLists{{10}, {11}, {12}}));
}

// One group of one rank says nothing about the other (published code returned early here).
TEST(Deal, OneDenseRankStillDealsExperts) {
  const std::vector<ParamGroup> groups{GroupOf({1, 3}, 0), GroupOf({2, 4}, 10, true)};
  EXPECT_EQ(DealPingPong(groups, 1, 2).expert, (RankLists{{10}, {11}}));
  EXPECT_EQ(DealPingPong(groups, 1, 2).dense, (RankLists{{0, 1}}));
  EXPECT_EQ(DealPingPong(groups, 2, 1).expert, (RankLists{{10, 11}}));
}

TEST(Deal, RanksBeyondTheParametersOwnNothing) {
  const Deal deal = DealPingPong({GroupOf({7, 9})}, 5, 5);
  EXPECT_EQ(deal.dense, (RankLists{{0}, {1}, {}, {}, {}}));
  EXPECT_EQ(deal.expert, RankLists(5));
}

TEST(Deal, FrozenParametersHaveNoOwner) {
  ParamGroup group = GroupOf({1, 2, 3});
  group.params[1].trainable = false;
  EXPECT_EQ(DealPingPong({group}, 2, 1).dense, (RankLists{{0}, {2}}));
}

TEST(Deal, RefusesWhatItCannotDeal) {
  EXPECT_THROW(DealPingPong({GroupOf({1})}, 0, 1), std::invalid_argument);
  EXPECT_THROW(DealPingPong({GroupOf({1})}, 1, 0), std::invalid_argument);
  EXPECT_THROW(DealPingPong({GroupOf({1}), GroupOf({2})}, 1, 1), std::invalid_argument);
}

TEST(CutBucketsTest, LastParametersFirstClosedWhenFull) {
  const std::vector<ParamFacts> params{Sized(0, 4), Sized(1, 3), Sized(2, 2), Sized(3, 1)};
  const std::vector<ParamBucket> buckets = CutBuckets(params, 3);
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[0].params, (ParamIds{3, 2}));
  EXPECT_EQ(buckets[1].params, (ParamIds{1}));
  EXPECT_EQ(buckets[2].params, (ParamIds{0}));
  EXPECT_EQ(CutBuckets(params, 0).size(), 1u);
  EXPECT_TRUE(CutBuckets({}, 3).empty());
}

TEST(CutBucketsTest, DenseAndExpertParametersShareNoBucket) {
  std::vector<ParamFacts> params{Sized(0, 1), Sized(1, 1, true), Sized(2, 1), Sized(3, 1, true)};
  params[2].trainable = false;
  const std::vector<ParamBucket> buckets = CutBuckets(params, 0);
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].params, (ParamIds{0}));
  EXPECT_EQ(buckets[1].params, (ParamIds{3, 1}));
  EXPECT_TRUE(buckets[1].expert);
}

TEST(ListsOfBucketTest, OrderIsThatOfTheDealAndRanksMayHaveNothing) {
  const Deal deal = DealPingPong({GroupOf({5, 3, 8, 1})}, 3, 1);  // 3 -> 0, 1 -> 1, 0 and 2 -> 2
  ASSERT_EQ(deal.dense, (RankLists{{3}, {1}, {0, 2}}));
  EXPECT_EQ(ListsOfBucket({{2, 1, 0}, false}, deal.dense), (RankLists{{}, {1}, {0, 2}}));
}

TEST(ListsOfBucketTest, RefusesTablesThatDoNotCoverTheBucket) {
  EXPECT_THROW(ListsOfBucket({{1, 0}, false}, {{0}, {}}), std::logic_error);
  EXPECT_THROW(ListsOfBucket({{0}, false}, {{0}, {0}}), std::logic_error);
}

}  // namespace
}  // namespace reference
