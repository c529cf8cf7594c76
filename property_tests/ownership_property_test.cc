// Ownership of whole parameters: for any shapes and any number of ranks each trainable parameter
// has one owner, and no rank has much more than another.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "property_tests/property.h"
#include "reference/layerwise/aligned_layout.h"

namespace shardproof {
namespace {

using reference::AlignedBucket;
using reference::AlignedItem;
using reference::AlignedLayout;
using reference::ParamFacts;
using reference::ParamGroup;
using reference::ParamIds;
using reference::RankLists;

int32_t AnyWorld() { return *rc::gen::element(1, 2, 3, 4, 5, 8, 64); }

// From no parameter to 24; matrices, vectors, empty ones; some frozen.
std::vector<ParamFacts> AnyParams(bool may_be_expert) {
  std::vector<ParamFacts> params;
  const int32_t count = *rc::gen::inRange(0, 25);
  for (int32_t i = 0; i < count; ++i) {
    ParamFacts facts;
    facts.param = i;
    if (*rc::gen::arbitrary<bool>()) {
      facts.rows = *rc::gen::inRange<int64_t>(1, 200);
      facts.cols = *rc::gen::inRange<int64_t>(1, 200);
      facts.numel = facts.rows * facts.cols;
    } else {
      facts.numel = *rc::gen::element<int64_t>(0, 1, 48, 64, 100, 1000, 1000);
    }
    facts.trainable = *rc::gen::inRange(0, 8) > 0;
    facts.expert = may_be_expert && *rc::gen::inRange(0, 3) == 0;
    facts.tied_embedding = !facts.expert && *rc::gen::inRange(0, 16) == 0;
    params.push_back(facts);
  }
  return params;
}

std::vector<ParamGroup> GroupsOf(const std::vector<ParamFacts>& params) {
  std::vector<ParamGroup> groups{{"matrices", {}}, {"vectors", {}}, {"nothing", {}}};
  for (const ParamFacts& param : params) groups[param.rows > 0 ? 0 : 1].params.push_back(param);
  return groups;
}

ParamIds TrainableIds(const std::vector<ParamFacts>& params, bool expert) {
  ParamIds ids;
  for (const ParamFacts& param : params) {
    if (param.trainable && param.expert == expert) ids.push_back(param.param);
  }
  return ids;
}

void ExpectPartition(const RankLists& lists, const ParamIds& all) {
  ParamIds united;
  for (const ParamIds& list : lists) united.insert(united.end(), list.begin(), list.end());
  std::sort(united.begin(), united.end());
  RC_ASSERT(united == all);
}

bool Holds(const char* name, const std::function<void()>& property) {
  PropertyOptions options;
  options.evaluations = 300;
  return CheckProperty(name, property, options);
}

TEST(OwnershipPropertyTest, TheDealIsAPartition) {
  EXPECT_TRUE(Holds("the deal is a partition", [] {
    const std::vector<ParamFacts> params = AnyParams(true);
    const reference::Deal deal = DealPingPong(GroupsOf(params), AnyWorld(), AnyWorld());
    ExpectPartition(deal.dense, TrainableIds(params, false));
    ExpectPartition(deal.expert, TrainableIds(params, true));
  }));
}

TEST(OwnershipPropertyTest, TheDealIsBalanced) {
  EXPECT_TRUE(Holds("the deal is balanced", [] {
    const std::vector<ParamFacts> params = AnyParams(false);
    const RankLists lists = DealPingPong(GroupsOf(params), AnyWorld(), 1).dense;
    size_t fewest = params.size(), most = 0;
    int64_t least = INT64_MAX, largest = 0, most_elements = 0;
    for (const ParamIds& list : lists) {
      int64_t elements = 0;
      for (int32_t param : list) {
        const int64_t numel = params[static_cast<size_t>(param)].numel;
        elements += numel;
        largest = std::max(largest, numel);
      }
      fewest = std::min(fewest, list.size());
      most = std::max(most, list.size());
      least = std::min(least, elements);
      most_elements = std::max(most_elements, elements);
    }
    RC_ASSERT(most - std::min(fewest, most) <= 1u);
    RC_ASSERT(most_elements - least <= 2 * largest);
  }));
}

TEST(OwnershipPropertyTest, ListsOfBucketsPartitionThem) {
  EXPECT_TRUE(Holds("lists of buckets partition them", [] {
    const std::vector<ParamFacts> params = AnyParams(true);
    const reference::Deal deal = DealPingPong(GroupsOf(params), AnyWorld(), AnyWorld());
    ParamIds in_buckets;
    const auto size = *rc::gen::element<int64_t>(0, 1, 1000, 20000);
    for (const reference::ParamBucket& bucket : reference::CutBuckets(params, size)) {
      const reference::RankLists lists =
          ListsOfBucket(bucket, bucket.expert ? deal.expert : deal.dense);
      ParamIds sorted = bucket.params;
      std::sort(sorted.begin(), sorted.end());
      ExpectPartition(lists, sorted);
      in_buckets.insert(in_buckets.end(), sorted.begin(), sorted.end());
    }
    std::sort(in_buckets.begin(), in_buckets.end());
    ParamIds all = TrainableIds(params, false);
    const ParamIds experts = TrainableIds(params, true);
    all.insert(all.end(), experts.begin(), experts.end());
    std::sort(all.begin(), all.end());
    RC_ASSERT(in_buckets == all);
  }));
}

// No parameter lies across an edge or on another; each begins at a multiple of 64.
void ExpectPlaces(const AlignedLayout& layout, const AlignedBucket& bucket) {
  int64_t end = bucket.begin;
  for (const AlignedItem& item : bucket.items) {
    RC_ASSERT(item.begin >= end);
    RC_ASSERT((item.begin - bucket.begin) % 64 == 0);
    end = item.begin + item.numel;
  }
  RC_ASSERT(end <= bucket.begin + layout.shards * bucket.shard_size);
  RC_ASSERT(layout.shards * bucket.shard_size % 128 == 0);
}

// Either within 1.3 times the mean, or what the emptiest shard and one more parameter make.
void ExpectOverhead(const AlignedLayout& layout, const AlignedBucket& bucket) {
  int64_t elements = 0, largest = 0;
  for (const AlignedItem& item : bucket.items) {
    elements += item.numel;
    largest = std::max<int64_t>(largest, std::max<int64_t>(item.numel, 1));
  }
  const auto count = static_cast<int64_t>(bucket.items.size());
  const int64_t mean = elements / layout.shards + 1;
  const int64_t fallback = mean + 64 * count / layout.shards + 64 + largest;
  RC_ASSERT(bucket.shard_size <= std::max(13 * mean / 10 + 1, fallback) + 128);
}

TEST(OwnershipPropertyTest, AlignedLayoutsSplitNoParameter) {
  EXPECT_TRUE(Holds("aligned layouts split no parameter", [] {
    const std::vector<ParamFacts> params = AnyParams(false);
    const auto bucket_size = *rc::gen::element<int64_t>(0, 1, 1000, 20000, 100000);
    const AlignedLayout layout = LayOutAligned(params, AnyWorld(), bucket_size);
    int64_t begin = 0;
    for (const AlignedBucket& bucket : layout.buckets) {
      RC_ASSERT(bucket.begin == begin);
      ExpectPlaces(layout, bucket);
      ExpectOverhead(layout, bucket);
      begin += layout.shards * bucket.shard_size;
    }
    ExpectPartition(layout.Owners(), TrainableIds(params, false));
  }));
}

}  // namespace
}  // namespace shardproof
