#include "conformance/runner/workers/worker_pool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <stdexcept>

namespace shardproof {
namespace {

// Item 2 ends as the test says; all others return their square.
std::map<size_t, WorkResult> RunWith(const std::function<void()>& two, int jobs = 2,
                                     double stall_seconds = 60) {
  std::map<size_t, WorkResult> results;
  RunInWorkers(
      6, {jobs, stall_seconds, 600},
      [&](size_t item, WorkerSide& side) {
        Progress& progress = *side.progress;
        side.describe = [](uint64_t address, std::string* text) {
          *text = "byte " + std::to_string(address - 0x30) + " of nothing";
          return true;
        };
        progress.rank.store(1);
        Progress::Set(progress.call, sizeof progress.call, "train_step 0");
        Progress::Set(progress.last, sizeof progress.last, "compute");
        if (item == 2) two();
        return std::to_string(item * item);
      },
      [&](size_t item, const WorkResult& result) { results[item] = result; });
  return results;
}

void ExpectOnlyTwoDied(const std::map<size_t, WorkResult>& results, const std::string& death) {
  ASSERT_EQ(results.size(), 6u);
  for (const auto& [item, result] : results) {
    EXPECT_EQ(result.done, item != 2) << item;
    if (item != 2) {
      EXPECT_EQ(result.blob, std::to_string(item * item));
    }
  }
  EXPECT_NE(results.at(2).death.find(death), std::string::npos) << results.at(2).death;
}

TEST(WorkerPool, EveryItemIsDoneOnce) {
  const auto results = RunWith([] {});
  EXPECT_EQ(results.size(), 6u);
  for (const auto& [item, result] : results) EXPECT_TRUE(result.done) << item;
}
TEST(WorkerPool, NoFurtherItemIsBegunWhenItIsEnough) {
  for (const size_t jobs : {1, 2}) {
    size_t done = 0;
    PoolOptions options;
    options.jobs = static_cast<int>(jobs);
    options.stall_seconds = 60;
    options.enough = [&] { return done >= 2; };
    RunInWorkers(
        6, options, [](size_t, WorkerSide&) { return std::string("done"); },
        [&](size_t, const WorkResult& result) { done += result.done ? 1 : 0; });
    EXPECT_GE(done, 2u);
    EXPECT_LE(done, 1 + jobs);
  }
}
TEST(WorkerPool, SegmentationFaultEndsOneItem) {
  ExpectOnlyTwoDied(RunWith([] { raise(SIGSEGV); }), "ended by SIGSEGV (Segmentation fault)");
}
TEST(WorkerPool, CrashSaysWhatTheAddressIs) {
  ExpectOnlyTwoDied(RunWith([] { *reinterpret_cast<volatile int*>(uintptr_t{0x34}) = 1; }),
                    "SIGSEGV (Segmentation fault): address 0x34: byte 4 of nothing");
}
TEST(WorkerPool, AbortEndsOneItem) {
  ExpectOnlyTwoDied(RunWith([] { std::abort(); }), "ended by SIGABRT");
}
TEST(WorkerPool, ExitZeroIsNoSuccess) {
  ExpectOnlyTwoDied(RunWith([] { _exit(0); }, 1), "with exit code 0");
}
TEST(WorkerPool, ExitWithoutHandlersOfTheParent) {
  ExpectOnlyTwoDied(RunWith([] { std::exit(0); }), "with exit code 0: exit(0) was called");
}
TEST(WorkerPool, EndlessLoopIsEnded) {
  ExpectOnlyTwoDied(RunWith(
                        [] {
                          volatile bool forever = true;
                          while (forever) {
                          }
                        },
                        2, 1),
                    "no progress");
}
TEST(WorkerPool, SleepingForEverIsEnded) {
  ExpectOnlyTwoDied(RunWith([] { pause(); }, 2, 0.5), "no progress");
}
TEST(WorkerPool, BeatsForEverEndAtTheLimit) {
  size_t dead = 0;
  std::string death;
  RunInWorkers(
      1, {1, 60, 0.5},
      [](size_t, WorkerSide& side) {
        while (true) side.progress->beats.fetch_add(1);
        return std::string();
      },
      [&](size_t, const WorkResult& result) { dead += result.done ? 0 : 1, death = result.death; });
  EXPECT_EQ(dead, 1u);
  EXPECT_NE(death.find("not ended after"), std::string::npos) << death;
}
TEST(WorkerPool, ExceptionEndsOneItem) {
  ExpectOnlyTwoDied(RunWith([] { throw std::runtime_error("no such timing"); }), "no such timing");
}
TEST(WorkerPool, ManyWorkersFewItems) {
  EXPECT_EQ(RunWith([] {}, 64).size(), 6u);
}

}  // namespace
}  // namespace shardproof
