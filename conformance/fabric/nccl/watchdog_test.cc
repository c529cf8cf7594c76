#include "conformance/fabric/nccl/watchdog.h"

#include <gtest/gtest.h>

namespace shardproof {
namespace {

using Cause = Watchdog::Cause;

class WatchdogTest : public testing::Test {
 protected:
  WatchdogTest() {
    WatchdogSources sources;
    sources.now_us = [this] { return now_; };
    sources.ended = [this] { return ended_; };
    sources.broken = [this] {
      ++looks_;
      return broken_;
    };
    sources.progress = [this] { return std::exchange(progress_, false); };
    sources.stall_us = 100;
    sources.look_us = 10;
    dog_.emplace(std::move(sources));
  }

  int64_t now_ = 1000;
  int looks_ = 0;
  bool progress_ = false;
  std::optional<std::string> ended_, broken_;
  std::optional<Watchdog> dog_;
};

TEST_F(WatchdogTest, IsPatientUntilNothingHasCompletedForTooLong) {
  const GiveUp give_up = dog_->Waiting("stream_sync of comm");
  EXPECT_FALSE(give_up());
  now_ += 99;
  EXPECT_FALSE(give_up());
  now_ += 10;
  EXPECT_TRUE(give_up());
  EXPECT_EQ(dog_->cause(), Cause::kStalled);
  EXPECT_NE(dog_->reason().find("while the host waits in stream_sync of comm"), std::string::npos);
}

TEST_F(WatchdogTest, ProgressStartsTheTimeAgain) {
  const GiveUp give_up = dog_->Waiting("x");
  for (int i = 0; i < 20; ++i) {
    now_ += 60;
    progress_ = true;
    EXPECT_FALSE(give_up());
  }
  now_ += 100;
  EXPECT_TRUE(give_up());
}

TEST_F(WatchdogTest, TimeBetweenWaitsDoesNotCount) {
  EXPECT_FALSE(dog_->Waiting("x")());
  now_ += 1000;  // the host computes something of its own
  EXPECT_FALSE(dog_->Waiting("y")());
}

TEST_F(WatchdogTest, LooksAtTheFirstQuestionAndThenNowAndThen) {
  const GiveUp give_up = dog_->Waiting("x");
  for (int i = 0; i < 50; ++i) give_up();
  EXPECT_EQ(looks_, 1);
  now_ += 10;
  give_up();
  EXPECT_EQ(looks_, 2);
  dog_->Waiting("y")();
  EXPECT_EQ(looks_, 3);
}

TEST_F(WatchdogTest, AnEndedRunIsTheReasonEvenIfACommunicatorIsBrokenToo) {
  ended_ = "rank 3 failed";
  broken_ = "remote error";
  EXPECT_TRUE(dog_->Waiting("x")());
  EXPECT_EQ(dog_->cause(), Cause::kEnded);
  EXPECT_EQ(dog_->reason(), "rank 3 failed");
}

TEST_F(WatchdogTest, ABrokenCommunicatorEndsAWaitAndStaysTheReason) {
  broken_ = "dp: remote error";
  EXPECT_TRUE(dog_->Waiting("x")());
  broken_.reset();
  EXPECT_TRUE(dog_->Waiting("y")());
  EXPECT_TRUE(dog_->Bites());
  EXPECT_EQ(dog_->cause(), Cause::kBroken);
  EXPECT_EQ(dog_->reason(), "dp: remote error");
}

TEST_F(WatchdogTest, BitesWithoutAWait) {
  EXPECT_FALSE(dog_->Bites());
  ended_ = "rank 0 failed";
  EXPECT_TRUE(dog_->Bites());
}

}  // namespace
}  // namespace shardproof
