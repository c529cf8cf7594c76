#include "conformance/runner/support/supports_file.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "conformance/cases/support/random_cases.h"

namespace shardproof {
namespace {

// What is said of a file that is wrong.
std::string Said(const std::string& text) {
  try {
    Spaces kept;
    CheckSupports(ParseSupports(text, "engine.toml"), FactorsUpTo(2, kept), "engine.toml");
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(SupportsFileTest, WhatIsWrittenIsRead) {
  const Supported supported{
      {"strategies",
       {{{"strategy", {"optim", "no_shard"}}, {"tp", {"1"}}},
        {{{"tied", {"1"}}, {"units", {"none"}}}, {{"recompute", {"1"}}, {"reused", {"1"}}}},
        {{"strategy", "no_shard"}},
        8}},
      {"layer_wise", {{{"world", {"2"}}}}}};
  EXPECT_EQ(ParseSupports(SupportsText(supported, "a comment"), "file"), supported);
  EXPECT_TRUE(ParseSupports(SupportsText({}, "nothing"), "file").empty());
}

TEST(SupportsFileTest, EveryValueOfEverySpaceIsReadBack) {
  Spaces kept;
  const std::vector<CaseFactors> spaces = FactorsUpTo(0, kept);
  const Supported supported = AllOf(spaces);
  EXPECT_TRUE(supported.contains("experts"));
  const std::string text = SupportsText(supported, "of two\nlines, and \xff");
  EXPECT_EQ(ParseSupports(text, "file"), supported) << text;
  CheckSupports(supported, spaces, "file");
}

TEST(SupportsFileTest, SaysWhereAFileIsWrong) {
  EXPECT_NE(Said("[strategies]\ntp = 1\n").find("engine.toml:2: tp wants a list"),
            std::string::npos);
  EXPECT_NE(Said("[strategies]\ntp = [1]\n").find("engine.toml:2: tp: values stand in quotes"),
            std::string::npos);
  EXPECT_NE(Said("[dense]\ntp = ['1']\n").find("engine.toml:1: wanted [strategies]"),
            std::string::npos);
  EXPECT_NE(Said("[strategies\n").find("engine.toml:1: "), std::string::npos);
  EXPECT_NE(Said("[strategies]\ntp = ['7']\n").find("engine.toml: strategies: tp has no value"),
            std::string::npos);
  EXPECT_NE(Said("[strategies]\ntpp = ['1']\n").find("no knob \"tpp\""), std::string::npos);
  EXPECT_NE(
      Said("[strategies]\nwithout = ['tp']\n").find("engine.toml:2: without: each is a table"),
      std::string::npos);
  EXPECT_NE(Said("[strategies]\nwithout = 1\n").find("engine.toml:2: without wants a list"),
            std::string::npos);
  EXPECT_NE(Said("[strategies]\nwithout = [{tp = ['7']}]\n").find("without: tp has no value"),
            std::string::npos);
  EXPECT_NE(Said("[strategies]\nplain = ['tp']\n").find("engine.toml:2: plain wants a table"),
            std::string::npos);
  EXPECT_NE(Said("[strategies]\nplain = {tp = 2}\n").find("plain: tp wants a value in quotes"),
            std::string::npos);
  EXPECT_NE(Said("[strategies]\nplain = {tp = '2'}\n").find("plain: tp = \"2\" is not among"),
            std::string::npos);
  for (const char* count : {"'8'", "1", "65", "2.0"}) {
    EXPECT_NE(Said(std::string("[strategies]\nchanges = ") + count + "\n")
                  .find("engine.toml:2: changes wants a number of knobs, 2 to 64"),
              std::string::npos)
        << count;
  }
  EXPECT_EQ(Said("[strategies]\nworld = ['1', '64']\n"), "");  // of a larger machine
}

}  // namespace
}  // namespace shardproof
