#include "reference/core/layout.h"

#include <gtest/gtest.h>

#include <random>

namespace reference {
namespace {

void ExpectSound(const BucketLayout& layout, const std::vector<ParamShape>& params) {
  ASSERT_EQ(layout.items.size(), params.size());
  ASSERT_EQ(layout.size % layout.shards, 0);
  int64_t end = 0, elements = 0;
  for (const BucketItem& item : layout.items) {
    EXPECT_GE(item.offset, end) << "items overlap";
    end = item.offset + item.numel;
    elements += item.numel;
  }
  EXPECT_LE(end, layout.size);
  for (const ParamShape& param : params) {
    for (const BucketItem& item : layout.items) {
      if (item.param != param.param) continue;
      EXPECT_EQ(item.numel, param.numel);
      for (int32_t s = 1; s < layout.shards; ++s) {
        const int64_t inside = layout.ShardBegin(s) - item.offset;
        if (inside > 0 && inside < item.numel) {
          EXPECT_EQ(inside % param.row, 0) << "a shard boundary splits a row";
        }
      }
    }
  }
  // Shards put together are the bucket.
  int64_t covered = 0;
  for (int32_t s = 0; s < layout.shards; ++s) {
    for (const BucketSlice& slice : layout.Slices(layout.ShardBegin(s), layout.ShardSize(s)))
      covered += slice.count;
  }
  EXPECT_EQ(covered, elements);
}

TEST(Layout, RowsAreNeverSplitAndPaddingIsLessThanARowPerShard) {
  std::mt19937 random(3);
  auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int trial = 0; trial < 3000; ++trial) {
    const int64_t base = draw(1, 5);
    std::vector<ParamShape> params;
    int64_t elements = 0, largest = 1;
    const int64_t n = draw(1, 6);
    for (int32_t p = 0; p < n; ++p) {
      const int64_t row = draw(0, 1) == 0 ? 1 : base * (int64_t{1} << draw(0, 2));
      params.push_back({p, row * draw(1, 20), row});
      elements += params.back().numel;
      largest = std::max(largest, row);
    }
    const auto shards = static_cast<int32_t>(draw(1, 9));
    const BucketLayout layout = LayOut(params, shards);
    ExpectSound(layout, params);
    EXPECT_LT(layout.size - elements, shards == 1 ? 1 : shards * largest);
  }
}

TEST(Layout, OneShardIsNotPadded) { EXPECT_EQ(LayOut({{0, 7, 1}, {1, 15, 5}}, 1).size, 22); }

TEST(Layout, LargestRowsComeFirst) {
  const BucketLayout layout = LayOut({{0, 3, 1}, {1, 16, 8}, {2, 12, 4}}, 2);
  EXPECT_EQ(layout.items[0].param, 1);
  EXPECT_EQ(layout.items[1].param, 2);
  EXPECT_EQ(layout.items[2].param, 0);
  EXPECT_EQ(layout.size, 32);
}

TEST(Layout, ParameterSmallerThanTheWorldLeavesShardsEmpty) {
  const BucketLayout layout = LayOut({{0, 3, 1}}, 8);
  EXPECT_EQ(layout.size, 8);
  EXPECT_EQ(layout.Slices(2, 1).size(), 1U);
  EXPECT_TRUE(layout.Slices(3, 1).empty()) << "only padding";
}

TEST(Layout, RowSizesThatDoNotDivideAreRefused) {
  EXPECT_FALSE(RowsFit(16, 24));
  EXPECT_THROW(LayOut({{0, 32, 16}, {1, 48, 24}}, 2), std::invalid_argument);
}

TEST(Layout, SlicesNamePlacesInTensorAndRange) {
  const BucketLayout layout = LayOut({{0, 10, 1}, {1, 6, 1}}, 4);
  const std::vector<BucketSlice> slices = layout.Slices(8, 4);
  ASSERT_EQ(slices.size(), 2U);
  EXPECT_EQ(slices[0].param_offset, 8);
  EXPECT_EQ(slices[0].range_offset, 0);
  EXPECT_EQ(slices[0].count, 2);
  EXPECT_EQ(slices[1].param_offset, 0);
  EXPECT_EQ(slices[1].range_offset, 2);
  EXPECT_EQ(slices[1].count, 2);
}

}  // namespace
}  // namespace reference
