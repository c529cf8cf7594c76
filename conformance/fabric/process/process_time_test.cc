#include "conformance/fabric/process/process_time.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <vector>

namespace shardproof {
namespace {

// A child on the first core of this process, until it is killed.
class Child {
 public:
  explicit Child(const std::function<void()>& act) : pid_(fork()) {
    if (pid_ != 0) return;
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&one);
    for (int core = 0; CPU_COUNT(&one) == 0; ++core) {
      if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
    }
    sched_setaffinity(0, sizeof one, &one);
    while (true) act();
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

void Loop() {}
void Sleep() { usleep(1000); }

TEST(ProcessTime, ALoopRuns) {
  const Child loop(Loop);
  const Span span(loop.pid());
  while (span.Ran() < 0.2) usleep(1000);
  EXPECT_LE(span.Free(), span.Seconds());
}

// Four loops on one core: each of them is kept from running most of the time.
TEST(ProcessTime, WhatAProcessIsKeptFromRunningIsNotFree) {
  const Child a(Loop), b(Loop), c(Loop), d(Loop);
  if (ProcessTimeOf(a.pid()).queued == 0) {
    while (ProcessTimeOf(a.pid()).ran < 0.1) usleep(1000);
    if (ProcessTimeOf(a.pid()).queued == 0) GTEST_SKIP() << "this kernel counts no queueing";
  }
  const Span span(a.pid());
  while (span.Ran() < 0.3) usleep(1000);
  EXPECT_LT(span.Free(), 0.6 * span.Seconds());
}

// However busy the machine, code that sleeps is free nearly all of the time.
TEST(ProcessTime, ASleeperIsFree) {
  const Child sleeper(Sleep);
  const Span span(sleeper.pid());
  while (span.Free() < 0.3) usleep(1000);
  EXPECT_LT(span.Ran(), 0.3);
}

TEST(ProcessTime, AProcessThatIsGoneHasNone) {
  pid_t gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, nullptr, 0);
  EXPECT_EQ(ProcessTimeOf(gone).ran, 0);
  EXPECT_EQ(ProcessTimeOf(gone).queued, 0);
}

}  // namespace
}  // namespace shardproof
