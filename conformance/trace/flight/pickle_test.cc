#include "conformance/trace/flight/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace shardproof::flight {
namespace {

using ::testing::HasSubstr;
using namespace std::string_view_literals;

std::string Shown(const ValueTree& tree, const Value& value) {
  std::string text;
  switch (value.type) {
    case Value::Type::kNull:
      return "none";
    case Value::Type::kReal:
      return std::to_string(value.real);
    case Value::Type::kText:
      return "'" + std::string(ValueTree::TextOf(value)) + "'";
    case Value::Type::kList:
    case Value::Type::kTable:
      for (const Value& item : tree.Items(value))
        text += (text.empty() ? "" : " ") + Shown(tree, item);
      return value.type == Value::Type::kList ? "[" + text + "]" : "{" + text + "}";
    default:
      return std::to_string(value.number);
  }
}

std::string Read(std::string_view bytes) {
  ValueTree tree;
  try {
    return Shown(tree, ReadPickle(bytes, tree));
  } catch (const FormatError& error) {
    return error.what();
  }
}

TEST(Pickle, NumbersAndTexts) {
  EXPECT_EQ(Read("\x80\x02K\x07."sv), "7");
  EXPECT_EQ(Read("\x80\x02J\xfe\xff\xff\xff."sv), "-2");
  EXPECT_EQ(Read("\x80\x02\x8a\x03\x00\x00\x80."sv), "-8388608");
  EXPECT_EQ(Read("\x80\x02\x8a\x00."sv), "0");
  EXPECT_EQ(Read("\x80\x02G\x3f\xe0\x00\x00\x00\x00\x00\x00."sv), "0.500000");
  EXPECT_EQ(Read("\x80\x02X\x02\x00\x00\x00hi."sv), "'hi'");
  EXPECT_EQ(Read("\x80\x02N."sv), "none");
}

// As pickle.dumps(..., protocol=2) and torch's own pickler write them.
TEST(Pickle, ListsTuplesAndTables) {
  EXPECT_EQ(Read("\x80\x02]q\x00(K\x01K\x02]q\x01K\x03"
                 "ae."sv),
            "[1 2 [3]]");
  EXPECT_EQ(Read("\x80\x02K\x01K\x02\x86q\x00."sv), "[1 2]");
  EXPECT_EQ(Read("\x80\x02}q\x00(X\x01\x00\x00\x00"
                 "aK\x01X\x01\x00\x00\x00"
                 "bNu."sv),
            "{'a' 1 'b' none}");
}

TEST(Pickle, WhatIsRememberedComesAgain) {
  EXPECT_EQ(Read("\x80\x02](X\x01\x00\x00\x00"
                 "aq\x05h\x05h\x05"
                 "e."sv),
            "['a' 'a' 'a']");
  EXPECT_THAT(Read("\x80\x02h\x05."sv), HasSubstr("byte 2 of the pickle: a memo that was never"));
}

// A list that grows in batches while others are made in between.
TEST(Pickle, ListsGrowInBatches) {
  EXPECT_EQ(Read("\x80\x02](]K\x01"
                 "aK\x02"
                 "e(]K\x03"
                 "a]K\x04"
                 "ae."sv),
            "[[1] 2 [3] [4]]");
}

// Two lists that grow in turn: each moves behind the other, into room of its own.
TEST(Pickle, ListsThatGrowInTurnStayApart) {
  ValueTree tree;
  const Value first = tree.New(Value::Type::kList), second = tree.New(Value::Type::kList);
  std::string ones, twos;
  for (int i = 0; i < 40; ++i) {
    const Value values[] = {ValueTree::Int(i), ValueTree::Int(100 + i)};
    tree.Append(first, {values, 1});
    tree.Append(second, {values, 2});
    ones += (i == 0 ? "" : " ") + std::to_string(i);
    twos += (i == 0 ? "" : " ") + std::to_string(i) + " " + std::to_string(100 + i);
  }
  EXPECT_EQ(Shown(tree, first), "[" + ones + "]");
  EXPECT_EQ(Shown(tree, second), "[" + twos + "]");
}

TEST(Pickle, NothingIsRun) {
  EXPECT_THAT(Read("\x80\x02"
                   "cos\nsystem\n."sv),
              HasSubstr("operation 0x63"));
  EXPECT_THAT(Read("\x80\x02K\x01R."sv), HasSubstr("nothing is run"));
  EXPECT_THAT(Read("\x80\x09N."sv), HasSubstr("a protocol after 5"));
}

TEST(Pickle, WhatEndsOrBeginsInTheMiddleIsRefused) {
  for (const std::string_view bytes :
       {""sv, "\x80"sv, "\x80\x02"sv, "\x80\x02X\xff\xff\xff\xff."sv, "\x80\x02K"sv, "\x80\x02."sv,
        "\x80\x02"
        "e."sv,
        "\x80\x02(K\x01."sv, "\x80\x02K\x01K\x02."sv,
        "\x80\x02"
        "a."sv,
        "\x80\x02K\x01K\x02"
        "a."sv,
        "\x80\x02}(K\x01u."sv, "\x80\x02q\x01."sv, "\x80\x02]r\xff\xff\xff\xff."sv,
        "\x80\x02\x8a\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01."sv})
    EXPECT_THAT(Read(bytes), HasSubstr("of the pickle: ")) << bytes.size();
}

}  // namespace
}  // namespace shardproof::flight
