#include "conformance/runner/workers/work_beside.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stdexcept>

#include "conformance/fabric/process/shared_words_for_test.h"

namespace shardproof {
namespace {

constexpr double kLong = 600;

WorkResult ResultOf(const std::function<std::string()>& work, double limit_seconds = kLong) {
  WorkBeside beside;
  beside.Begin(work);
  EXPECT_TRUE(beside.under_way());
  WorkResult result = beside.Await(limit_seconds);
  EXPECT_FALSE(beside.under_way());
  return result;
}

TEST(WorkBeside, ItHasWhatThisProcessHadAndChangesNothingHere) {
  const std::string large(3 << 20, 'x');  // more than a socket holds
  int here = 1;
  const WorkResult result = ResultOf([&] {
    here = 2;
    return large + std::to_string(here);
  });
  EXPECT_TRUE(result.done) << result.death;
  EXPECT_EQ(result.blob, large + "2");
  EXPECT_EQ(here, 1);
}

TEST(WorkBeside, BothGoOnAtOnce) {
  const SharedWords words;
  WorkBeside beside;
  beside.Begin([&]() -> std::string {
    words->word[0] = 1;
    words.Await(1);
    return "both";
  });
  words.Await(0);
  EXPECT_FALSE(beside.Ended());
  words->word[1] = 1;
  while (!beside.Ended()) usleep(1000);
  EXPECT_EQ(beside.Await(kLong).blob, "both");
}

// Reports tell it.
TEST(WorkBeside, TheTimeIsTheWorksOwnThoughNobodyLooks) {
  using Clock = std::chrono::steady_clock;
  WorkBeside beside;
  const Clock::time_point began = Clock::now();
  beside.Begin([] { return std::string("done"); });
  while (!beside.Ended()) usleep(1000);
  const std::chrono::duration<double> took = Clock::now() - began;
  usleep(static_cast<useconds_t>(1e6 * took.count()) + 100'000);
  const WorkResult result = beside.Await(kLong);
  EXPECT_GE(result.seconds, 0);
  EXPECT_LE(result.seconds, took.count());
}

TEST(WorkBeside, OneAfterTheOther) {
  WorkBeside beside;
  for (int i = 0; i < 3; ++i) {
    beside.Begin([i] { return std::to_string(i); });
    EXPECT_EQ(beside.Await(kLong).blob, std::to_string(i));
  }
}

TEST(WorkBeside, HowItEndedOtherwise) {
  const WorkResult crashed = ResultOf([]() -> std::string {
    raise(SIGSEGV);
    return "";
  });
  EXPECT_FALSE(crashed.done);
  EXPECT_NE(crashed.death.find("SIGSEGV"), std::string::npos) << crashed.death;
  const WorkResult threw = ResultOf([]() -> std::string { throw std::runtime_error("no room"); });
  EXPECT_FALSE(threw.done);
  EXPECT_NE(threw.death.find("no room"), std::string::npos) << threw.death;
  const WorkResult slow = ResultOf(
      []() -> std::string {
        while (true) pause();
      },
      0.2);
  EXPECT_FALSE(slow.done);
  EXPECT_NE(slow.death.find("not ended after"), std::string::npos) << slow.death;
}

TEST(WorkBeside, EndsWithItsOwner) {
  const SharedWords words;
  {
    WorkBeside beside;
    beside.Begin([&]() -> std::string {
      words->word[0] = getpid();
      while (true) pause();
    });
    words.Await(0);
  }
  EXPECT_NE(kill(words->word[0], 0), 0) << "it is gone, and reaped";
}

}  // namespace
}  // namespace shardproof
