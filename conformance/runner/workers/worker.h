// worker.h: how does a process that was forked to answer questions look to the one that asks?
//
// One question at a time. It is watched while it answers: whether engine code of its own has
// stopped to move, and how it ended if it does not come back.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/common/frame.h"
#include "conformance/fabric/process/process_time.h"
#include "conformance/host/progress.h"

namespace shardproof {

// What a question finds in its worker.
struct WorkerSide {
  Progress* progress = nullptr;  // of the engine; shared with the one that watches
  // To grow while the host waits inside the fabric: then the engine does not hang. Shared too.
  std::atomic<uint64_t>* waits = nullptr;
  // What may an address be that a crash has hit? Reset it when what it refers to goes.
  std::function<bool(uint64_t address, std::string* text)> describe;
};

// Called in the worker. What it throws ends the worker, and is its last word.
using AnswerQuestion = std::function<Frame(const Frame& question, WorkerSide& side)>;

class Worker {
 public:
  Worker();
  ~Worker();  // Kill
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // others: their sockets are closed in the new process.
  void Start(const AnswerQuestion& answer, const std::vector<std::unique_ptr<Worker>>& others);
  // A worker that is gone is noticed when its answer is awaited.
  void Ask(const Frame& question);
  // Waits for the answer. Nothing: the worker is gone, and reaped; Death() says how it ended.
  std::optional<Frame> Answer();
  void Kill();  // with the processes that it has started

  bool alive() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  int socket() const { return socket_; }  // readable when it has something to say, or has died
  // "ended by SIGSEGV (Segmentation fault): address 0x8"
  const std::string& Death() const { return death_; }
  bool crashed() const { return crashed_; }  // by a signal
  const Progress& progress() const { return shared_->progress; }

  // Notices whether anything has moved; call it again and again. Answers whether the worker is
  // stuck: neither Progress nor waits have moved for stall_seconds of its processor time, or for
  // four times as many by the clock, for code that sleeps; time in which it could not get a core
  // does not count. The suite's own code has 30 times as long.
  bool Stuck(double stall_seconds);
  double StillSeconds() const;  // by the clock, since anything moved
  bool InEngine() const;        // engine code has run for this question
  // "in engine code of train_step 1, after communicate", "waiting for other ranks in ..."
  std::string Where() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Shared {
    Progress progress;
    std::atomic<uint64_t> waits{0};
  };
  [[noreturn]] void Serve(int socket, const AnswerQuestion& answer);
  void Moved();
  void Reap();

  Shared* shared_;
  pid_t pid_ = -1;
  int socket_ = -1;
  std::string death_;
  bool crashed_ = false;
  uint64_t beats_ = 0, waits_ = 0;
  bool waiting_ = false;  // what moved last were the waits
  Clock::time_point moved_;
  std::optional<Span> still_;  // of its process, since shortly after it moved
};

// By the clock, of code that sleeps: so many stall_seconds until it counts as stuck.
inline constexpr double kStallsOfASleeper = 4;

// "no progress for 5 s" and the like name whole seconds.
std::string SecondsText(double seconds);

}  // namespace shardproof
