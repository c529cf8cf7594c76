#include "conformance/common/safe_text.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "conformance/common/safe_stream.h"

namespace shardproof {
namespace {

// Bytes, pieces of characters, hazards and markup in any order.
std::string Hostile(uint64_t seed) {
  static const std::vector<std::string> kPieces = {"\x1b[2J",
                                                   "\x1b]0;title\x07",
                                                   "\r",
                                                   "\n",
                                                   "\t",
                                                   "\b",
                                                   "\x7f",
                                                   "\xc2\x9b",
                                                   "\u202e",
                                                   "\u2066",
                                                   "\u200b",
                                                   "\ufeff",
                                                   "\xef\xbf\xbe",
                                                   "\xef\xbf\xbf",
                                                   "\xed\xa0\x80",
                                                   "\xf4\x90",
                                                   "\xc0\x80",
                                                   "\u2028",
                                                   "```",
                                                   "````",
                                                   "~~~",
                                                   "|",
                                                   "]]>",
                                                   "<!--",
                                                   "\\",
                                                   "\"",
                                                   "'",
                                                   "&#0;",
                                                   "# ",
                                                   "- ",
                                                   "1. ",
                                                   "===",
                                                   "    ",
                                                   "é",
                                                   "日本",
                                                   "\U0001F600",
                                                   "conformant",
                                                   "\U000E0041"};
  std::mt19937_64 draw(seed);
  std::string text;
  for (uint64_t n = draw() % 12; n > 0; --n) {
    if (draw() % 4 == 0) {
      text += static_cast<char>(draw() % 256);
    } else {
      text += kPieces[draw() % kPieces.size()];
    }
  }
  return text;
}

// Valid, and without hazards but newlines.
bool IsSafe(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    if (text[0] != '\n' && IsHazard(text.substr(0, length))) return false;
    text.remove_prefix(length);
  }
  return true;
}

TEST(SafeText, WhatActsIsWrittenOut) {
  const std::pair<std::string, std::string> rows[] = {
      {"plain, é and 日本", "plain, é and 日本"},
      {"\x1b[31mred", "\\x1b[31mred"},
      {"a\rb\x07", "a\\x0db\\x07"},
      {"a\tb", "a b"},
      {"two\nlines", "two\nlines"},
      {std::string("nul\0", 4), "nul\\x00"},
      {"\x7f\xc2\x9b", "\\x7f\\u009b"},
      {"\u202egnp", "\\u202egnp"},
      {"\xef\xbf\xbe", "\\ufffe"},
      {"\U000E0041", "\\U000e0041"},
      {"\xff\xc3", "\\xff\\xc3"},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
  };
  for (const auto& [text, seen] : rows) EXPECT_EQ(VisibleText(text), seen);
  EXPECT_EQ(VisibleLine("two\nlines"), "two\\nlines");
  EXPECT_EQ(IndentedText("two\n\x1blines", 2), "two\n  \\x1blines");
}

TEST(SafeText, XmlHasItsEntities) {
  EXPECT_EQ(XmlText("<a b='\"'>&\n\xef\xbf\xbf"),
            "&lt;a b=&apos;&quot;&apos;&gt;&amp;&#10;\\uffff");
}

TEST(SafeText, MarkdownHasNoMarkupLeft) {
  EXPECT_EQ(MarkdownLine("w8.zero3: failed"), "w8.zero3: failed");
  EXPECT_EQ(MarkdownLine("a|b\n# c `d`"), "a\\|b\\\\n\\# c \\`d\\`");
  EXPECT_EQ(MarkdownLine("   - item"), "\\- item");
  EXPECT_EQ(MarkdownLine("12. item"), "12\\. item");
  EXPECT_EQ(MarkdownLine("==="), "\\===");
  EXPECT_EQ(MarkdownLine("0.5 of it"), "0\\.5 of it");
  EXPECT_EQ(MarkdownBlock("a\n```\nb"), "````\na\n```\nb\n````\n");
  EXPECT_EQ(MarkdownBlock(""), "```\n```\n");
}

TEST(SafeText, AnyBytesAreSafeAndOnceIsEnough) {
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    const std::string text = Hostile(seed), seen = VisibleText(text);
    ASSERT_TRUE(IsSafe(seen)) << seed << ": " << seen;
    ASSERT_EQ(VisibleText(seen), seen) << seed;
    ASSERT_EQ(MarkdownLine(text).find('\n'), std::string::npos) << seed;
    if (IsSafe(text)) {
      ASSERT_EQ(text, seen) << seed;
    }
  }
}

TEST(SafeText, ABlockEndsAtItsOwnFenceOnly) {
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    std::istringstream lines(MarkdownBlock(Hostile(seed)));
    std::vector<std::string> all;
    for (std::string line; std::getline(lines, line);) all.push_back(line);
    ASSERT_GE(all.size(), 2u);
    ASSERT_EQ(all.front(), all.back()) << seed;
    for (size_t i = 1; i + 1 < all.size(); ++i) {
      const std::string text =
          all[i].substr(std::min(all[i].size(), all[i].find_first_not_of(' ')));
      ASSERT_FALSE(text.starts_with(all.front())) << seed << ": " << all[i];
    }
  }
}

TEST(SafeStream, ShowsTheSameHoweverItIsWritten) {
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    const std::string text = Hostile(seed);
    std::ostringstream out;
    {
      const SafeStream safe(out);
      std::mt19937_64 draw(seed);
      for (size_t at = 0; at < text.size();) {
        const size_t n = 1 + draw() % 3;
        if (draw() % 3 == 0) {
          out.put(text[at++]);
        } else {
          out << text.substr(at, n) << std::flush;
          at += n;
        }
      }
    }
    ASSERT_EQ(out.str(), VisibleText(text)) << seed;
  }
}

TEST(SafeStream, ATerminalObeysOurOwnCodesOnly) {
  std::ostringstream out;
  {
    const SafeStream safe(out);
    out << TerminalCode{"\r\033[K"} << "\033[2J";
  }
  out << TerminalCode{"\r"};
  EXPECT_EQ(out.str(), "\r\033[K\\x1b[2J\r");
}

}  // namespace
}  // namespace shardproof
