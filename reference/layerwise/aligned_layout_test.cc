// Golden layouts: computed by hand from the published rule; the sizes 1024 and 1408 are published.
#include "reference/layerwise/aligned_layout.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "reference/layerwise/fixtures_for_test.h"

namespace reference {
namespace {

struct Place {
  std::string name;
  int64_t begin, end;
  bool operator==(const Place&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Place& place) {
  return out << place.name << " [" << place.begin << ", " << place.end << ")";
}

std::vector<Place> PlacesIn(const AlignedBucket& bucket) {
  std::vector<Place> places;
  for (const AlignedItem& item : bucket.items) {
    places.push_back(
        {kFiveLinear[static_cast<size_t>(item.param)].name, item.begin, item.begin + item.numel});
  }
  return places;
}

std::vector<ParamFacts> Vectors(const std::vector<int64_t>& in_backprop_order) {
  std::vector<ParamFacts> params;
  for (size_t i = in_backprop_order.size(); i-- > 0;) {
    ParamFacts facts;
    facts.param = static_cast<int32_t>(i);
    facts.numel = in_backprop_order[i];
    params.push_back(facts);
  }
  return params;
}

AlignedLayout Matrices(int32_t shards, int64_t bucket_size = 0) {
  return LayOutAligned(FiveLinearGroups()[0].params, shards, bucket_size);
}

TEST(AlignedLayout, OneBucketOverTwoShards) {
  const AlignedLayout layout = Matrices(2);
  ASSERT_EQ(layout.buckets.size(), 1u);
  EXPECT_EQ(PlacesIn(layout.buckets[0]), (std::vector<Place>{{"w1", 0, 3840},
                                                             {"w2", 3840, 5376},
                                                             {"w3", 5376, 6144},
                                                             {"w4", 6144, 6528},
                                                             {"w5", 6528, 6688}}));
  EXPECT_EQ(layout.size(), 7680);
  EXPECT_EQ(layout.Owners(), (RankLists{{0}, {2, 4, 6, 8}}));
}

TEST(AlignedLayout, TwoBucketsOverTwoShards) {
  const AlignedLayout layout = Matrices(2, 2000);
  ASSERT_EQ(layout.buckets.size(), 2u);
  EXPECT_EQ(PlacesIn(layout.buckets[0]),
            (std::vector<Place>{
                {"w2", 0, 1536}, {"w3", 1536, 2304}, {"w4", 2304, 2688}, {"w5", 2688, 2848}}));
  EXPECT_EQ(PlacesIn(layout.buckets[1]), (std::vector<Place>{{"w1", 3072, 6912}}));
  EXPECT_EQ(layout.buckets[1].begin, 3072);
  EXPECT_EQ(layout.size(), 10752);
  EXPECT_EQ(layout.Owners(), (RankLists{{2, 0}, {4, 6, 8}}));
}

TEST(AlignedLayout, OneBucketOverFourShards) {
  const AlignedLayout layout = Matrices(4);
  EXPECT_EQ(layout.Owners(), (RankLists{{0}, {2}, {4}, {6, 8}}));
  EXPECT_EQ(layout.size(), 15360);
}

// The fourth and fifth parameter fit beside the others without making the shards grow.
TEST(AlignedLayout, SmallParametersAreTakenIntoAFullBucket) {
  const AlignedLayout layout = LayOutAligned(Vectors({192, 192, 256, 128, 128, 192}), 2, 448);
  ASSERT_EQ(layout.buckets.size(), 2u);
  EXPECT_EQ(layout.buckets[0].items.size(), 5u);
  EXPECT_EQ(layout.buckets[1].begin, 1024);
  EXPECT_EQ(layout.size(), 1408);
}

TEST(AlignedLayout, WorkIsBalancedOverAllBuckets) {
  std::vector<ParamFacts> params;
  for (int32_t i = 0; i < 8; ++i) {
    ParamFacts facts;
    facts.param = i;
    facts.rows = facts.cols = 32;
    facts.numel = 1024;
    params.push_back(facts);
  }
  const AlignedLayout layout = LayOutAligned(params, 2, 2048);
  EXPECT_EQ(layout.buckets.size(), 4u);
  EXPECT_EQ(layout.cost, (std::vector<int64_t>{4 * 32768, 4 * 32768}));
}

TEST(AlignedLayout, CostIsThatOfAnIterationNotOfTheElements) {
  ParamFacts square, thin, vector;
  square.rows = square.cols = 64;
  square.numel = 4096;
  thin.rows = 1024;
  thin.cols = 4;
  thin.numel = 4096;
  vector.numel = 4096;
  EXPECT_EQ(StepCost(square), 64 * 4096);
  EXPECT_EQ(StepCost(thin), 4 * 4096);
  EXPECT_EQ(StepCost(vector), 4096);
}

TEST(AlignedLayout, ATiedEmbeddingIsAlone) {
  std::vector<ParamFacts> params = Vectors({64, 64, 64});
  params[1].tied_embedding = true;  // model order 2, 1, 0
  const AlignedLayout layout = LayOutAligned(params, 2);
  ASSERT_EQ(layout.buckets.size(), 3u);
  ASSERT_EQ(layout.buckets[1].items.size(), 1u);
  EXPECT_EQ(layout.buckets[1].items[0].param, 1);
  EXPECT_EQ(layout.buckets[1].items[0].begin, layout.buckets[1].begin);
}

TEST(AlignedLayout, FrozenParametersAndEmptyModels) {
  std::vector<ParamFacts> params = Vectors({64, 64});
  for (ParamFacts& param : params) param.trainable = false;
  EXPECT_TRUE(LayOutAligned(params, 4).buckets.empty());
  EXPECT_EQ(LayOutAligned({}, 4).Owners(), RankLists(4));
  EXPECT_EQ(LayOutAligned({}, 4).size(), 0);
}

TEST(AlignedLayout, ABucketIsAMultipleOfRanksAnd128) {
  EXPECT_EQ(LayOutAligned(Vectors({64}), 3).size(), 3 * 128);
}

TEST(AlignedLayout, AParameterAcrossAnEdgeIsAnError) {
  AlignedLayout layout = LayOutAligned(Vectors({64, 64}), 2);
  EXPECT_EQ(layout.Owners(), (RankLists{{0}, {1}}));
  layout.buckets[0].items[0].begin += 32;
  EXPECT_THROW(layout.Owners(), std::logic_error);
}

TEST(AlignedLayout, RefusesBadNumbers) {
  EXPECT_THROW(LayOutAligned(Vectors({64}), 0), std::invalid_argument);
  EXPECT_THROW(LayOutAligned(Vectors({64}), 2, -1), std::invalid_argument);
  std::vector<ParamFacts> mixed = Vectors({64, 64});
  mixed[1].expert = true;
  EXPECT_THROW(LayOutAligned(mixed, 2), std::invalid_argument);
}

}  // namespace
}  // namespace reference
