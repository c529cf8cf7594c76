#include "conformance/fabric/process/keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "conformance/fabric/process/descendants.h"
#include "conformance/fabric/process/process.h"
#include "conformance/fabric/process/shared_words_for_test.h"

namespace shardproof {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two forks and a session of its own: its parent is gone when this returns.
void StartDaemon(SharedWords& words) {
  if (fork() == 0) {
    setsid();
    if (fork() == 0) {
      words->word[0] = getpid();
      while (true) pause();
    }
    _exit(0);
  }
  words.Await(0);
}

class KeeperTest : public ::testing::Test {
 protected:
  KeeperTest() { AdoptOrphans(); }
  ~KeeperTest() override { EndDescendants(); }
  SharedWords words_;
};

TEST_F(KeeperTest, SaysHowItEnded) {
  Keeper keeper;
  keeper.Start([] { _exit(7); });
  keeper.Await();
  EXPECT_TRUE(keeper.end().known);
  EXPECT_EQ(DescribeWaitStatus(keeper.end().status).text, "exit code 7");
  EXPECT_EQ(keeper.end().left, 0);
  keeper.Start([] { raise(SIGSEGV); });
  keeper.Await();
  EXPECT_THAT(DescribeWaitStatus(keeper.end().status).text, HasSubstr("SIGSEGV"));
}

TEST_F(KeeperTest, ADaemonEndsWithItsProcess) {
  Keeper keeper;
  keeper.Start([&] {
    StartDaemon(words_);
    _exit(0);
  });
  keeper.Await();
  EXPECT_EQ(keeper.end().left, 1);
  EXPECT_THAT(LeftText(keeper.end()), HasSubstr("a process (keeper_test"));
  EXPECT_EQ(kill(words_->word[0], 0), -1);
  EXPECT_THAT(DescendantsOf(getpid()), IsEmpty());
}

TEST_F(KeeperTest, KillEndsADaemonToo) {
  Keeper keeper;
  keeper.Start([&] {
    StartDaemon(words_);
    words_->word[1] = 1;
    while (true) pause();
  });
  words_.Await(1);
  keeper.Kill();
  EXPECT_TRUE(keeper.end().known);
  EXPECT_THAT(DescribeWaitStatus(keeper.end().status).text, HasSubstr("SIGKILL"));
  EXPECT_EQ(kill(words_->word[0], 0), -1);
}

TEST_F(KeeperTest, AllEndsWhenTheOneThatAsksIsKilled) {
  const pid_t asks = fork();
  if (asks == 0) {
    Keeper keeper;
    keeper.Start([&] {
      StartDaemon(words_);
      words_->word[1] = getpid();
      while (true) pause();
    });
    while (true) pause();
  }
  words_.Await(1);
  kill(asks, SIGKILL);
  // The keeper is a child of this process now, and ends by itself.
  for (int left = 2; left > 0; --left) EXPECT_GT(wait(nullptr), 0);
  EXPECT_EQ(kill(words_->word[0], 0), -1);
  EXPECT_EQ(kill(words_->word[1], 0), -1);
}

TEST_F(KeeperTest, AKeeperThatIsKilledIsNoGoodEnd) {
  Keeper keeper;
  keeper.Start([&] {
    kill(getppid(), SIGKILL);
    while (true) pause();
  });
  keeper.Await();
  EXPECT_FALSE(keeper.end().known);
  EXPECT_FALSE(keeper.running());
}

TEST_F(KeeperTest, ForeignCodeHasNoFilesOfOurs) {
  Keeper keeper;
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  keeper.Start(
      [&] {
        for (int file = 3; file < 1024; ++file) {
          if (file != pipe_ends[1] && write(file, "x", 1) == 1) _exit(2);
        }
        _exit(write(pipe_ends[1], "y", 1) == 1 ? 0 : 3);
      },
      {pipe_ends[1]});
  keeper.Await();
  EXPECT_EQ(DescribeWaitStatus(keeper.end().status).text, "exit code 0");
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST_F(KeeperTest, AFreshProcessHasNoSignalsBlocked) {
  sigset_t all;
  sigfillset(&all);
  sigset_t before;
  sigprocmask(SIG_SETMASK, &all, &before);
  Keeper keeper;
  keeper.Start([] {
    raise(SIGTERM);
    _exit(0);
  });
  keeper.Await();
  sigprocmask(SIG_SETMASK, &before, nullptr);
  EXPECT_THAT(DescribeWaitStatus(keeper.end().status).text, HasSubstr("SIGTERM"));
}

}  // namespace
}  // namespace shardproof
