// Whole runs whose ranks are processes that a launcher has started: each watches its own.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "conformance/fabric/nccl/rendezvous/testing.h"
#include "conformance/runner/job/job_run.h"
#include "conformance/runner/nccl/process_fabric_for_test.h"
#include "conformance/runner/nccl/run_nccl.h"
#include "conformance/runner/nccl/three_cases_for_test.h"

namespace shardproof {
namespace {

using nlohmann::json;

// Each rank of the job as a process; answers the exit codes.
using Change = std::function<void(int rank, Options& options)>;
std::vector<int> RunJob(int size, const std::string& report, const ProcessHooks& hooks = {},
                        const Change& change = nullptr) {
  const int port = FreePort();
  std::vector<pid_t> processes;
  for (int rank = 0; rank < size; ++rank) {
    processes.push_back(Fork([&] {
      Options options;
      options.cases = kThree;
      options.stall_seconds = 60;
      options.fabric = "nccl";
      options.report = report;
      if (change) change(rank, options);
      if (std::freopen("/dev/null", "w", stdout) == nullptr) return 98;
      try {
        return RunNcclCommand(options, ProcessKitForTest(hooks),
                              Store::Meet({{"localhost"}, port, "job", rank, size}));
      } catch (const JobRefused&) {  // what else is thrown: 99
        return 3;
      }
    }));
  }
  std::vector<int> codes;
  for (const pid_t process : processes) codes.push_back(CodeOf(process));
  return codes;
}

std::map<std::string, std::string> StatusesIn(const std::string& folder) {
  std::map<std::string, std::string> statuses;
  std::ifstream in(folder + "/report.jsonl");
  for (std::string line; std::getline(in, line);) {
    const json row = json::parse(line);
    if (row.contains("case")) statuses[row["case"]] = row["status"];
  }
  return statuses;
}

TEST(RunNcclInAJob, RankZeroReportsAndAllAnswerItsCode) {
  const TestFolder folder;
  EXPECT_EQ(RunJob(3, folder.path()), (std::vector<int>{0, 0, 0}));
  for (const auto& [id, status] : StatusesIn(folder.path())) EXPECT_EQ(status, "pass") << id;
  EXPECT_EQ(StatusesIn(folder.path()).size(), 3u);
}

TEST(RunNcclInAJob, ACrashElsewhereEndsOneCase) {
  const TestFolder folder;
  EXPECT_EQ(RunJob(2, folder.path(), Bad([] { raise(SIGSEGV); })), (std::vector<int>{1, 1}));
  auto statuses = StatusesIn(folder.path());
  EXPECT_EQ(statuses[kThree[0]], "pass");
  EXPECT_EQ(statuses[kThree[1]], "fail");
  EXPECT_EQ(statuses[kThree[2]], "pass");
}

// Rank 0 says it, and the others follow, whatever their own options are.
TEST(RunNcclInAJob, MaxFailEndsTheRunOnAllRanks) {
  const TestFolder folder;
  const auto one_on_rank_0 = [](int rank, Options& options) {
    if (rank == 0) options.max_fail = 1;
  };
  EXPECT_EQ(RunJob(2, folder.path(), Bad([] { raise(SIGSEGV); }), one_on_rank_0),
            (std::vector<int>{1, 1}));
  auto statuses = StatusesIn(folder.path());
  EXPECT_EQ(statuses[kThree[1]], "fail");
  EXPECT_EQ(statuses.count(kThree[2]), 0u);
}

// Rank 0 alone asks the engine, draws, and looks for the smallest case that fails; the others
// follow.
TEST(RunNcclInAJob, RandomCasesAreDrawnAndShrunkByRankZero) {
  const TestFolder folder;
  const auto random = [](int, Options& options) {
    options.cases.clear();
    options.impl = "lib:conformance/examples/libwrong_scale.so";
    options.random = 4;
  };
  EXPECT_EQ(RunJob(2, folder.path(), {}, random), (std::vector<int>{1, 1}));
  auto statuses = StatusesIn(folder.path());
  EXPECT_GE(statuses.size(), 4u);
  EXPECT_EQ(statuses["w2.ddp"], "fail") << "the smallest that there is";
}

// In a shard of an engine that takes nothing there, all look for a case of another shard.
TEST(RunNcclInAJob, AShardWithoutACaseThatTheEngineTakes) {
  const TestFolder folder;
  const auto shard = [](int, Options& options) {
    options.cases.clear();
    options.profile = "smoke";
    options.impl = "lib:conformance/examples/libddp.so";
    options.shard = "4/9";
  };
  EXPECT_EQ(RunJob(2, folder.path(), {}, shard), (std::vector<int>{0, 0}));
  const auto statuses = StatusesIn(folder.path());
  EXPECT_EQ(statuses.size(), 1u);
  for (const auto& [id, status] : statuses) EXPECT_EQ(status, "unsupported") << id;
}

TEST(RunNcclInAJob, WhatCannotBeAskedIsRefusedByAll) {
  const TestFolder folder;
  const auto nothing = [](int rank, Options& options) {
    options.cases.clear();
    if (rank == 0) options.select = {"no such case"};
  };
  EXPECT_EQ(RunJob(3, folder.path(), {}, nothing), (std::vector<int>{3, 3, 3}));
}

// The fourth field of /proc/PID/stat, of a process whose name has no blanks.
pid_t ParentOf(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string pid, name, state;
  pid_t parent = -1;
  stat >> pid >> name >> state >> parent;
  return parent;
}

TEST(RunNcclInAJob, TheDeathOfAKeeperEndsOneCase) {
  const TestFolder folder;
  const auto kill_the_keeper = [] {
    kill(getppid(), SIGKILL);
    pause();
  };
  EXPECT_EQ(RunJob(2, folder.path(), Bad(kill_the_keeper)), (std::vector<int>{1, 1}));
  auto statuses = StatusesIn(folder.path());
  EXPECT_EQ(statuses[kThree[1]], "fail");
  EXPECT_EQ(statuses[kThree[2]], "pass");
}

TEST(RunNcclInAJob, TheDeathOfAWatchingProcessEndsTheJob) {
  const TestFolder folder;
  const auto kill_the_watcher = [] {
    kill(ParentOf(getppid()), SIGKILL);
    pause();
  };
  EXPECT_EQ(RunJob(3, folder.path(), Bad(kill_the_watcher)), (std::vector<int>{99, -SIGKILL, 99}));
}

TEST(RunNcclInAJob, AnEngineThatOneHostLacksEndsAll) {
  const TestFolder folder;
  const auto lacking = [](int rank, Options& options) {
    if (rank == 1) options.impl = "lib:/not/there.so";
  };
  EXPECT_EQ(RunJob(2, folder.path(), {}, lacking), (std::vector<int>{3, 3}));
}

TEST(RunNcclInAJob, ADeviceThatIsNotThereEndsAll) {
  const TestFolder folder;
  const ProcessHooks hooks = {[](const RankMachineOptions& options) {
                                if (options.rank == 1) throw std::runtime_error("no CUDA device");
                              },
                              nullptr};
  EXPECT_EQ(RunJob(2, folder.path(), hooks), (std::vector<int>{3, 3}));
}

}  // namespace
}  // namespace shardproof
