// Are measured steps told as the ratios that they are?
#include "conformance/runner/measure/link/overlap_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardproof {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// Compute 100, communication 60, of which 6 at the ends, and an optimizer of 4: bound 110, sum
// 164.
OverlapTimes Times(double baseline, double with, double predicted) {
  return {{100, 60, 4, 6}, baseline, with, predicted};
}

TEST(OverlapTable, TheBoundIsTheLongerOfTheTwo) {
  EXPECT_EQ(BoundOf({100, 60, 4, 6}), 110);
  EXPECT_EQ(BoundOf({100, 140, 4, 6}), 140);
}

TEST(OverlapTable, FiguresAreMediansOfRounds) {
  const OverlapRow row =
      RowOf("x", {Times(165, 110, 99), Times(154, 164, 164), Times(176, 121, 121)});
  EXPECT_DOUBLE_EQ(row.to_compute.median, 0.6);
  EXPECT_DOUBLE_EQ(row.baseline.median, 1.5);
  EXPECT_DOUBLE_EQ(row.baseline.least, 1.4);
  EXPECT_DOUBLE_EQ(row.with.median, 1.1);
  EXPECT_DOUBLE_EQ(row.with.least, 1.0);
  // All that can hide is hidden at the bound, and none where the two follow each other.
  EXPECT_DOUBLE_EQ(row.hidden->most, 100);
  EXPECT_DOUBLE_EQ(row.hidden->least, 0);
  EXPECT_DOUBLE_EQ(row.hidden->median, 100 * 43.0 / 54);
  EXPECT_DOUBLE_EQ(row.prediction.least, 0.9);
}

TEST(OverlapTable, RoundsAreMeasuredAgainUntilEnoughAreCalm) {
  OverlapTimes calm, busy;
  busy.steal = 2.5;
  EXPECT_TRUE(AnotherRound({}, 1, 0));
  EXPECT_FALSE(AnotherRound({calm}, 1, 3));
  EXPECT_FALSE(AnotherRound({busy}, 1, 0));
  EXPECT_TRUE(AnotherRound({busy}, 1, 1));
  EXPECT_FALSE(AnotherRound({busy, calm}, 1, 3));
  EXPECT_TRUE(AnotherRound({busy, calm}, 2, 1));
  EXPECT_FALSE(AnotherRound({busy, busy, busy}, 2, 1));
}

TEST(OverlapTable, RoundsAreChosenByStealTimeAlone) {
  std::vector<OverlapTimes> rounds{Times(165, 110, 99), Times(154, 164, 164), Times(176, 121, 121)};
  rounds[0].steal = 9;
  rounds[1].steal = 1;
  rounds[2].steal = 3;
  const std::vector<OverlapTimes> calmest = Calmest(rounds, 2);
  ASSERT_EQ(calmest.size(), 2u);
  EXPECT_EQ(calmest[0].with, 164);
  EXPECT_EQ(calmest[1].with, 121);
  EXPECT_EQ(Calmest(rounds, 5).size(), 3u);
}

TEST(OverlapTable, TellsEachEngineWithItsSpread) {
  OverlapTimes calm = Times(165, 110, 99), busy = Times(154, 121, 121);
  calm.steal = 2;
  busy.steal = 4;
  const OverlapRow row = RowOf("FSDP", {calm, busy});
  EXPECT_THAT(OverlapLine(row),
              MatchesRegex("FSDP +0.60 +1.45 \\(1.40 to 1.50\\) +1.05 \\(1.00 to 1.10\\) +"
                           "90 \\( 80 to 100\\) +0.95 \\(0.90 to 1.00\\) +"
                           "3.0 \\(2.0 to 4.0\\)\n"));
  const std::string drawing = OverlapDrawing({row});
  EXPECT_THAT(drawing, HasSubstr("FSDP, 0.60"));
  EXPECT_THAT(drawing, HasSubstr("<title>baseline: 1.45</title>"));
  EXPECT_THAT(drawing, HasSubstr("<title>with: 1.05</title>"));
}

// One operation that is at both ends: nothing hides behind anything.
TEST(OverlapTable, WhereNothingCanHideNothingIsHidden) {
  const OverlapRow row = RowOf("x", {{{100, 60, 4, 60}, 170, 170, 170}});
  EXPECT_FALSE(row.hidden);
  EXPECT_THAT(OverlapLine(row), HasSubstr(" -  "));
}

}  // namespace
}  // namespace shardproof
