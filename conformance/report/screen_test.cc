// What does a person see: widths, colours, times?
#include "conformance/report/screen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "conformance/report/console.h"
#include "conformance/report/reports_for_test.h"

namespace shardproof {
namespace {

using Lines = std::vector<std::string>;

TEST(WrappedLines, BreakAtBlanksAndStandBelowTheirBeginning) {
  EXPECT_EQ(WrappedLines("  one two three four five six seven", 26, 6),
            (Lines{"  one two three four five", "      six seven"}));
  EXPECT_EQ(WrappedLines("short", 24, 4), Lines{"short"});
  EXPECT_EQ(WrappedLines("a line that is not wrapped at all", 0, 4),
            Lines{"a line that is not wrapped at all"});
  const std::string word(50, 'x');
  EXPECT_EQ(WrappedLines("an " + word + " end", 30, 2), (Lines{"an", "  " + word, "  end"}));
  // Six characters of two bytes each.
  EXPECT_EQ(WrappedLines("\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9 and fourteen more ok", 28, 4).size(),
            1u);
}

TEST(DisplayOf, ColoursOnATerminalUnlessSomebodyDoesNotWantThem) {
  unsetenv("NO_COLOR");
  setenv("TERM", "xterm", 1);
  setenv("COLUMNS", "77", 1);
  EXPECT_TRUE(DisplayOf("auto", true).colors);
  EXPECT_EQ(DisplayOf("auto", true).width, 77u);
  EXPECT_FALSE(DisplayOf("auto", false).colors);
  EXPECT_EQ(DisplayOf("auto", false).width, 0u);
  EXPECT_FALSE(DisplayOf("never", true).colors);
  EXPECT_TRUE(DisplayOf("always", false).colors);
  EXPECT_FALSE(DisplayOf("always", false).rewrites);
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(DisplayOf("auto", true).colors);
  setenv("TERM", "xterm", 1);
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(DisplayOf("auto", true).colors);
  EXPECT_TRUE(DisplayOf("always", true).colors);
  setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(DisplayOf("auto", true).colors);
}

std::string Shown(const Display& display) {
  CaseReport c = Failing("w8.zero3");
  c.findings[0].finding.message = "layers.0 is reduced twice: " + std::string(60, 'a') + " then b";
  c.replay = "shardproof replay --case w8.zero3 --impl lib:" + std::string(90, 'p') + " --seed 1";
  c.shrink = "shardproof shrink --case w8.zero3 --impl lib:" + std::string(90, 'p') + " --seed 1";
  std::ostringstream out;
  Console console(out, display, false, 2, SentenceOf);
  const RunReport report = Report({c, Passing("w1")});
  for (const CaseReport& row : report.cases) console.CaseDone(row);
  console.Finish(report);
  return out.str();
}

std::string WithoutCodes(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      while (text[i] != 'm') ++i;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

TEST(Console, ColoursChangeNoText) {
  const std::string painted = Shown({false, true, 0}), plain = Shown({});
  EXPECT_NE(painted, plain);
  EXPECT_EQ(plain.find('\033'), std::string::npos);
  EXPECT_EQ(WithoutCodes(painted), plain);
  EXPECT_NE(painted.find("\033[31mfail\033[0m  w8.zero3"), std::string::npos) << painted;
  EXPECT_NE(painted.find("\033[31mtwo\033[0m"), std::string::npos) << painted;
  EXPECT_NE(painted.find("\033[31mnot conformant"), std::string::npos) << painted;
}

TEST(Console, WrapsWhatIsReadAndNoCommand) {
  const std::string text = Shown({false, false, 70});
  std::istringstream lines(text);
  size_t commands = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("shardproof ") != std::string::npos) {
      ++commands;
      EXPECT_TRUE(line.ends_with(" --seed 1")) << line;
    } else {
      EXPECT_LE(line.size(), 78u) << line;  // 60 letters without a blank, at column 17
    }
  }
  EXPECT_EQ(commands, 3u) << text;  // in the block; at the end the same, and what shrinks
  EXPECT_NE(text.find("\n                 then b\n"), std::string::npos) << text;
}

TEST(Console, TimesMoveWithinALongCase) {
  double now = 0;
  std::ostringstream out;
  Console console(out, {true, false, 0}, false, 4, SentenceOf, false, false, [&] { return now; });
  const auto bar = [&] {
    const std::string text = out.str();
    return text.substr(text.rfind('[') + 41);
  };
  now = 10;
  console.CaseDone(Passing("a"));
  EXPECT_EQ(bar(), "] 1/4, 0:10, about 0:30 left");
  now = 10.5;
  console.Tick();  // too early to draw again
  EXPECT_EQ(bar(), "] 1/4, 0:10, about 0:30 left");
  now = 15;
  console.Tick();
  EXPECT_EQ(bar(), "] 1/4, 0:15, about 0:25 left");
  now = 60;  // longer than the others: what is left grows
  console.Tick();
  EXPECT_EQ(bar(), "] 1/4, 1:00, about 1:00 left");
  now = 3700;
  console.Tick();
  EXPECT_EQ(bar(), "] 1/4, 1:01:40, about 1:01:40 left");
}

TEST(Console, ALogIsNotSilentForLong) {
  double now = 0;
  std::ostringstream out;
  Console console(out, {}, false, 4, SentenceOf, false, false, [&] { return now; });
  for (now = 1; now < 150; ++now) console.Tick();
  EXPECT_EQ(out.str(),
            "0 of 4 cases judged, 0 not passed, 1:00\n0 of 4 cases judged, 0 not passed, 2:00\n");
  std::ostringstream quiet;
  Console nothing(quiet, {}, false, 4, SentenceOf, false, true, [&] { return now; });
  nothing.Tick();
  EXPECT_EQ(quiet.str(), "");
}

TEST(Console, WhatAnEngineFailsWithIsShownWithWhatItPrinted) {
  CaseReport c = Failing("w2.ddp");
  for (int i = 0; i < 20; ++i) c.printed[1] += "line " + std::to_string(i) + "\n";
  c.printed[-1] = "loading\n";
  std::ostringstream out;
  Console(out, {}, false, 1, SentenceOf).CaseDone(c);
  EXPECT_NE(out.str().find("    the engine printed:\n      loading\n"), std::string::npos)
      << out.str();
  EXPECT_NE(
      out.str().find(
          "    rank 1 printed (the last 8 of 20 lines; --report DIR has more):\n      line 12\n"),
      std::string::npos)
      << out.str();
  EXPECT_NE(out.str().find("      line 19\n"), std::string::npos);
  EXPECT_EQ(out.str().find("line 11\n"), std::string::npos);
}

TEST(Console, VerboseShowsNotes) {
  CaseReport c = Passing("w2.ddp");
  for (int i = 0; i < 12; ++i) c.notes.push_back("profile E" + std::to_string(i));
  for (const bool verbose : {false, true}) {
    std::ostringstream out;
    Console(out, {}, verbose, 1, SentenceOf).CaseDone(c);
    EXPECT_EQ(Times("note: profile E", out.str()), verbose ? 10u : 0u);
    EXPECT_EQ(Times("and 2 more notes (--all)", out.str()), verbose ? 1u : 0u);
  }
}

}  // namespace
}  // namespace shardproof
