// testing.h: how do tests make jobs of threads and of processes?
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "conformance/fabric/nccl/rendezvous/store.h"

namespace shardproof {

// A folder of the test's own, removed at its end.
class TestFolder {
 public:
  TestFolder() {
    std::string path = ::testing::TempDir() + "rendezvousXXXXXX";
    if (mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A port that nobody listens on now.
inline int FreePort() { return Server(true, 0, "probe", 1, 0).port(); }

// Runs main(0) .. main(size - 1) as threads.
inline void AsThreads(int size, const std::function<void(int rank)>& main) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&main, rank] { main(rank); });
  for (std::thread& thread : threads) thread.join();
}

// A process that runs main and ends with what it answers; an exception is 99.
inline pid_t Fork(const std::function<int()>& main) {
  const pid_t child = fork();
  if (child != 0) return child;
  int code = 99;
  try {
    code = main();
  } catch (const std::exception& error) {
    fprintf(stderr, "process: %s\n", error.what());
  }
  _exit(code);
}

// The process's exit code, or minus the signal that ended it.
inline int CodeOf(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

// What Meet throws, or "".
template <class Call>
std::string ErrorOf(Call&& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// Why the store is broken, as soon as it is.
inline std::string BrokenBecause(Store& store) {
  for (int round = 0; round < 20'000; ++round) {
    if (const auto why = store.Broken()) return *why;
    RestBeforeLook(round);
  }
  return "not broken";
}

}  // namespace shardproof
