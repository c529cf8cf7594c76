// Is steal time read from the right place?
#include "conformance/runner/measure/link/steal_time.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace shardproof {
namespace {

constexpr char kStat[] =
    "cpu  100 20 30 700 5 1 4 40 60 10\n"
    "cpu0 50 10 15 350 2 0 2 20 30 5\n";

TEST(StealTime, GuestsTimeIsNotCountedTwice) {
  const ProcessorTime time = ProcessorTimeIn(kStat);
  EXPECT_EQ(time.steal, 40);
  EXPECT_EQ(time.all, 900);
}

TEST(StealTime, APercentageOfWhatPassed) {
  EXPECT_DOUBLE_EQ(StealPercent({40, 900}, {65, 1000}), 25);
  EXPECT_DOUBLE_EQ(StealPercent({40, 900}, {40, 900}), 0);
}

TEST(StealTime, AnotherTextIsRefused) {
  for (const char* text : {"", "cpu 1 2 3 4 5 6 7", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3 4 5 6 7 x"})
    EXPECT_THROW(ProcessorTimeIn(text), std::invalid_argument) << text;
}

TEST(StealTime, OfThisMachineItCanBeRead) {
  const ProcessorTime time = ProcessorTimeNow();
  EXPECT_GE(time.all, time.steal);
  EXPECT_GE(time.steal, 0);
}

}  // namespace
}  // namespace shardproof
