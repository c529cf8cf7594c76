#include "conformance/runner/worker_pool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <stdexcept>

namespace shardproof {
namespace {

// Item 2 ends as the test says; all others return their square.
std::map<size_t, WorkResult> RunWith(const std::function<void()>& two, int jobs = 2, double stall_seconds = 60) {
  std::map<size_t, WorkResult> results;
  RunInWorkers(
      6, {jobs, stall_seconds},
      [&](size_t item, Progress& progress) {
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
  EXPECT_EQ(results.at(2).where, "rank 1 in train_step 0, after compute");
}

TEST(WorkerPool, EveryItemIsDoneOnce) {
  const auto results = RunWith([] {});
  EXPECT_EQ(results.size(), 6u);
  for (const auto& [item, result] : results) EXPECT_TRUE(result.done) << item;
}
TEST(WorkerPool, SegmentationFaultEndsOneItem) {
  ExpectOnlyTwoDied(RunWith([] { raise(SIGSEGV); }), "signal 11");
}
TEST(WorkerPool, AbortEndsOneItem) { ExpectOnlyTwoDied(RunWith([] { std::abort(); }), "signal 6"); }
TEST(WorkerPool, ExitZeroIsNoSuccess) { ExpectOnlyTwoDied(RunWith([] { _exit(0); }, 1), "exit(0)"); }
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
TEST(WorkerPool, ManyWorkersFewItems) { EXPECT_EQ(RunWith([] {}, 64).size(), 6u); }

}  // namespace
}  // namespace shardproof
