#include "conformance/trace/clean_text.h"

#include <gtest/gtest.h>

namespace shardproof {
namespace {

TEST(CleanText, WhatIsUtf8Stays) {
  for (const char* text : {"", "main", "a\n\x01\x7f\"\\", "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"})
    EXPECT_EQ(CleanText(text), text);
}

TEST(CleanText, EachByteThatIsNoneBecomesOneCharacter) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(CleanText("a\xFF\xC3(b"), "a" + bad + bad + "(b");
  EXPECT_EQ(CleanText("\xED\xA0\x80"), bad + bad + bad) << "a surrogate";
  EXPECT_EQ(CleanText("\xC0\x80"), bad + bad) << "overlong";
  EXPECT_EQ(CleanText("cut \xE2\x82"), "cut " + bad + bad);
}

TEST(CleanText, ALongTextIsCutBetweenCharacters) {
  const std::string most(kMaxTextBytes, 'x');
  EXPECT_EQ(CleanText(most), most);
  EXPECT_EQ(CleanText(most + "y"), most + "... (4097 bytes)");
  std::string wide = "x";  // so that no character ends at the limit
  for (int i = 0; i < 4096; ++i) wide += "\xE2\x82\xAC";
  const std::string cut = CleanText(wide);
  EXPECT_EQ(cut.find("\xEF\xBF\xBD"), std::string::npos);
  EXPECT_TRUE(cut.ends_with("\xE2\x82\xAC... (12289 bytes)"));
}

}  // namespace
}  // namespace shardproof
