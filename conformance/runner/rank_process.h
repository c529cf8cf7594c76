// rank_process.h: how does one rank process look to the process that has forked it?
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "conformance/fabric/process/process.h"
#include "conformance/runner/rank_processes.h"

namespace shardproof {

class RankProcess {
 public:
  explicit RankProcess(int rank);
  ~RankProcess();
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  // others: their pipes are closed in the new process.
  void Start(const MakeRankWork& make, const std::vector<std::unique_ptr<RankProcess>>& others);
  void Give(size_t item);
  void Kill();  // with the processes that it has started

  bool alive() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  int results() const { return results_; }
  int rank() const { return rank_; }

  // Reads one message. Nothing: the process is gone, and reaped; then how it ended is in Death().
  std::optional<std::vector<std::string>> Read();
  // "ended by SIGSEGV (Segmentation fault): address 0x8"
  const std::string& Death() const { return death_; }
  bool crashed() const { return crashed_; }  // by a signal

  // Call now and then: notices whether anything has moved.
  void Look();
  double StillSeconds() const;           // by the clock, since anything moved
  double StillProcessorSeconds() const;  // of the process's work in that time
  bool InEngine() const;                 // engine code has run in this item
  // "in engine code of train_step 1, after communicate", "waiting for other ranks in ..."
  std::string Where() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Shared {
    Progress progress;
    std::atomic<uint64_t> waits{0};
  };
  [[noreturn]] void Serve(int commands, int results, const MakeRankWork& make);
  double ProcessorSeconds() const;
  void Reap();

  int rank_;
  Shared* shared_;
  pid_t pid_ = -1;
  int commands_ = -1, results_ = -1;
  std::string death_;
  bool crashed_ = false;
  uint64_t beats_ = 0, waits_ = 0;
  bool waiting_ = false;  // what moved last were the waits
  Clock::time_point moved_;
  double processor_ = 0;  // seconds, when it moved
};

// For transport.
std::vector<std::string> FieldsOf(const RankAnswer& answer);
RankAnswer AnswerOf(
    const std::vector<std::string>& fields);  // throws std::runtime_error if they are not whole

}  // namespace shardproof
