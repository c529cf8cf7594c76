#include "conformance/runner/workers/engine_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "conformance/fabric/process/descendants.h"
#include "conformance/fabric/process/shared_words_for_test.h"

namespace shardproof {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

EngineProcessEnd RunWith(const std::function<void()>& foreign, double stall_seconds = 60,
                         double limit_seconds = 600) {
  EngineProcessOptions options;
  options.stall_seconds = stall_seconds;
  options.limit_seconds = limit_seconds;
  return RunInEngineProcess(options, [&](WorkerSide& side) {
    side.progress->rank = 1;
    Progress::Set(side.progress->call, sizeof side.progress->call, "train_step 0");
    Progress::Set(side.progress->last, sizeof side.progress->last, "compute");
    foreign();
    side.progress->rank = -1;
    return Frame{std::string("evidence\0of it", 14)};
  });
}

TEST(EngineProcess, EvidenceComesBack) {
  const EngineProcessEnd end = RunWith([] {});
  EXPECT_TRUE(end.answered);
  EXPECT_EQ(end.evidence, FrameView{std::string_view("evidence\0of it", 14)});
  EXPECT_EQ(end.left, "");
}

TEST(EngineProcess, AnEndIsLocated) {
  const EngineProcessEnd end = RunWith([] { raise(SIGSEGV); });
  EXPECT_FALSE(end.answered);
  EXPECT_TRUE(end.foreign);
  EXPECT_EQ(end.rank, 1);
  EXPECT_EQ(end.where, "train_step 0, after compute");
  EXPECT_THAT(end.death, HasSubstr("ended by SIGSEGV (Segmentation fault)"));
}

TEST(EngineProcess, AnEndBeforeTheFirstHostCallNamesTheLastOneBefore) {
  for (const std::string before : {"", "publish in train_step 0"}) {
    const EngineProcessEnd end = RunInEngineProcess({}, [&](WorkerSide& side) {
      side.progress->rank = 0;
      Progress::Set(side.progress->call, sizeof side.progress->call, "train_step 1");
      Progress::Set(side.progress->earlier, sizeof side.progress->earlier, before);
      raise(SIGSEGV);
      return Frame{};
    });
    EXPECT_EQ(end.where, "train_step 1, before a host call of it returned" +
                             (before.empty() ? "" : " (the last one: " + before + ")"));
  }
}

TEST(EngineProcess, LeavingIsNoEvidence) {
  EXPECT_THAT(RunWith([] { _exit(0); }).death, HasSubstr("with exit code 0"));
  EXPECT_THAT(RunWith([] { std::exit(0); }).death, HasSubstr("exit(0) was called"));
  EXPECT_FALSE(RunWith([] { std::quick_exit(0); }).answered);
}

TEST(EngineProcess, WhatTheSuiteThrowsIsNotTheEngines) {
  const EngineProcessEnd end = RunWith([] { throw std::runtime_error("no such case"); });
  EXPECT_FALSE(end.answered);
  EXPECT_EQ(end.error, "no such case");
}

TEST(EngineProcess, LoopsAndSleepersAreEnded) {
  const EngineProcessEnd end = RunWith(
      [] {
        volatile bool forever = true;
        while (forever) continue;
      },
      0.2);
  EXPECT_TRUE(end.hung);
  EXPECT_THAT(end.death, HasSubstr("no progress"));
  EXPECT_TRUE(RunWith([] { pause(); }, 0.1).hung);
  EXPECT_THAT(RunWith([] { pause(); }, 60, 0.1).death, HasSubstr("not ended after 0 s"));
}

TEST(EngineProcess, BytesInEveryFileReachNobody) {
  const EngineProcessEnd end = RunWith([] {
    for (int file = 3; file < 1024; ++file) {
      if (write(file, "\x08\0\0\0\0\0\0\0", 8) >= 0) _exit(3);
      close(file);
    }
  });
  EXPECT_TRUE(end.answered) << end.death;
}

TEST(EngineProcess, ADaemonIsEndedAndNamed) {
  SharedWords words;
  const EngineProcessEnd end = RunWith([&] {
    if (fork() != 0) return words.Await(0);
    setsid();
    if (fork() != 0) _exit(0);
    words->word[0] = getpid();
    while (true) pause();
  });
  EXPECT_TRUE(end.answered);
  EXPECT_THAT(end.left, HasSubstr("a process (engine_process"));
  EXPECT_EQ(kill(words->word[0], 0), -1);
  EXPECT_THAT(DescendantsOf(getpid()), IsEmpty());
}

TEST(EngineProcess, AKeeperThatIsKilledIsNoEvidence) {
  AdoptOrphans();
  const EngineProcessEnd end = RunWith([] {
    kill(getppid(), SIGKILL);
    while (true) pause();
  });
  EXPECT_FALSE(end.answered);
  EXPECT_THAT(end.death, HasSubstr("ended by SIGKILL, after the process that watches it"));
  EndDescendants();
}

}  // namespace
}  // namespace shardproof
