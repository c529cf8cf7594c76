#include "conformance/checks/base/contents.h"

#include <gtest/gtest.h>

namespace shardproof {
namespace {

using Kind = Content::Kind;

Content Param(int32_t param, int64_t element = 0, uint8_t width = 4) {
  Content content;
  content.kind = Kind::kParam;
  content.param = param;
  content.element = element;
  content.width = width;
  return content;
}

std::string Text(const std::vector<Chunk>& chunks) {
  std::string text;
  for (const Chunk& chunk : chunks) {
    text += std::to_string(chunk.offset) + "+" + std::to_string(chunk.length) + "=";
    text += chunk.content.kind == Kind::kParam
                ? "p" + std::to_string(chunk.content.param) + "@" +
                      std::to_string(chunk.content.element)
                : std::to_string(static_cast<int>(chunk.content.kind));
    text += " ";
  }
  return text;
}

TEST(BlockContents, IsPoisonBeforeAnythingIsWritten) {
  EXPECT_EQ(Text(BlockContents(16).Get(0, 16)), "0+16=0 ");
}

TEST(BlockContents, AReadInTheMiddleCountsElements) {
  BlockContents block(64);
  block.Put(0, 64, Param(3));
  EXPECT_EQ(Text(block.Get(16, 8)), "0+8=p3@4 ");
}

TEST(BlockContents, AWriteInTheMiddleSplitsWhatWasThere) {
  BlockContents block(48);
  block.Put(0, 48, Param(3));
  block.Put(16, 16, Param(5));
  EXPECT_EQ(Text(block.Get(0, 48)), "0+16=p3@0 16+16=p5@0 32+16=p3@8 ");
}

TEST(BlockContents, GapsReadAsPoison) {
  BlockContents block(48);
  block.Put(16, 16, Param(5));
  EXPECT_EQ(Text(block.Get(0, 48)), "0+16=0 16+16=p5@0 32+16=0 ");
}

TEST(BlockContents, PoisonErases) {
  BlockContents block(32);
  block.Put(0, 32, Param(5));
  block.Put(8, 8, Content{});
  EXPECT_EQ(Text(block.Get(0, 32)), "0+8=p5@0 8+8=0 16+16=p5@4 ");
}

TEST(BlockContents, PiecesThatContinueEachOtherJoin) {
  BlockContents block(32);
  block.Put(0, 16, Param(5));
  block.Put(16, 16, Param(5, 4));
  EXPECT_EQ(Text(block.Get(0, 32)), "0+32=p5@0 ");
}

TEST(BlockContents, PiecesThatDoNotContinueEachOtherStayApart) {
  BlockContents block(32);
  block.Put(0, 16, Param(5));
  block.Put(16, 16, Param(5));
  EXPECT_EQ(Text(block.Get(0, 32)), "0+16=p5@0 16+16=p5@0 ");
}

TEST(ZipChunks, PairsElementsOfDifferentWidth) {
  std::string text;
  ZipChunks({{0, 16, Param(1)}}, 16, {{0, 4, Param(2, 0, 2)}, {4, 4, Param(3, 0, 2)}}, 8,
            [&](int64_t offset, int64_t length, const Content& x, const Content& y) {
              text += Text({{offset, length, x}}) + Text({{offset, length, y}});
            });
  EXPECT_EQ(text, "0+4=p1@0 0+4=p2@0 4+4=p1@2 4+4=p3@0 ");
}

TEST(ContributionSets, AUnionAddsMultiplicities) {
  ContributionSets sets;
  const int32_t a = sets.Of({1, 0, 0, 2}), b = sets.Of({1, 1, 0, 2});
  const int32_t both = sets.Union(a, b), more = sets.Union(both, a);
  EXPECT_EQ(sets.Get(both).size(), 2u);
  ASSERT_EQ(sets.Get(more).size(), 2u);
  EXPECT_EQ(sets.Get(more)[0].times, 2);
  EXPECT_EQ(sets.Get(more)[1].times, 1);
}

TEST(ContributionSets, EqualSetsAreTheSame) {
  ContributionSets sets;
  const int32_t a = sets.Of({1, 0, 0, 2}), b = sets.Of({1, 1, 0, 2});
  EXPECT_EQ(sets.Union(a, b), sets.Union(b, a));
  EXPECT_EQ(sets.Union(0, a), a);
}

}  // namespace
}  // namespace shardproof
