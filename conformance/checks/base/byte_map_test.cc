// Ranges that replace, split and leave each other.
#include "conformance/checks/base/byte_map.h"

#include <gtest/gtest.h>

#include <string>

namespace shardproof {
namespace {

std::string Text(const ByteMap<char>& map, int64_t begin = 0, int64_t end = 100) {
  std::string text;
  for (const auto& piece : map.Get(1, begin, end)) {
    text += piece.value + std::to_string(piece.begin) + "-" + std::to_string(piece.end) + " ";
  }
  return text;
}

TEST(ByteMap, WhatIsPutReplacesWhatWasThere) {
  ByteMap<char> map;
  map.Put(1, 10, 50, 'a');
  map.Put(1, 20, 30, 'b');
  EXPECT_EQ(Text(map), "a10-20 b20-30 a30-50 ");
  map.Put(1, 15, 35, 'c');
  EXPECT_EQ(Text(map), "a10-15 c15-35 a35-50 ");
  map.Put(1, 0, 100, 'd');
  EXPECT_EQ(Text(map), "d0-100 ");
  map.Put(1, 5, 5, 'e');
  EXPECT_EQ(Text(map), "d0-100 ");
}

TEST(ByteMap, NeighboursStay) {
  ByteMap<char> map;
  map.Put(1, 0, 10, 'a');
  map.Put(1, 10, 20, 'b');
  EXPECT_EQ(map.Erase(1, 10, 20), std::set<char>{'b'});
  EXPECT_EQ(Text(map), "a0-10 ");
  EXPECT_TRUE(map.Erase(1, 10, 20).empty());
  EXPECT_TRUE(map.Erase(2, 0, 20).empty());
}

TEST(ByteMap, WhoLosesBytes) {
  ByteMap<char> map;
  map.Put(1, 0, 10, 'a');
  map.Put(1, 10, 20, 'b');
  map.Put(1, 20, 30, 'a');
  map.Put(2, 0, 8, 'a');
  EXPECT_EQ(map.Bytes('a'), 28);
  EXPECT_EQ(map.Erase(1, 5, 25), (std::set<char>{'a', 'b'}));
  EXPECT_EQ(Text(map), "a0-5 a25-30 ");
  EXPECT_EQ(map.Bytes('a'), 18);
  EXPECT_EQ(map.Bytes('b'), 0);
  EXPECT_EQ(map.EraseBlock(1), std::set<char>{'a'});
  EXPECT_EQ(map.bytes(), (std::map<char, int64_t>{{'a', 8}}));
}

TEST(ByteMap, PiecesAreCutToWhatIsAsked) {
  ByteMap<char> map;
  map.Put(1, 0, 10, 'a');
  map.Put(1, 20, 30, 'b');
  EXPECT_EQ(Text(map, 5, 25), "a5-10 b20-25 ");
  EXPECT_EQ(Text(map, 10, 20), "");
  EXPECT_EQ(Text(map, 30, 40), "");
}

}  // namespace
}  // namespace shardproof
