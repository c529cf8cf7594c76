// worker.h: how does a process that was forked to answer questions look to the one that asks?
//
// One question at a time. It is watched while it answers: whether engine code of its own has
// stopped to move, and how it ended if it does not come back. All that it has started ends with it
// (fabric/process/keeper.h).
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "conformance/common/frame.h"
#include "conformance/fabric/process/keeper.h"
#include "conformance/runner/workers/progress_watch.h"

namespace shardproof {

// What a question finds in its worker.
struct WorkerSide {
  Progress* progress = nullptr;  // of the engine; shared with the one that watches
  // To grow while the host waits inside the fabric: then the engine does not hang. Shared too.
  std::atomic<uint64_t>* waits = nullptr;
  LastStack* stack = nullptr;  // where it was when it crashed, or was asked; may be null
  // What may an address be that a crash has hit? Reset it when what it refers to goes.
  std::function<bool(uint64_t address, std::string* text)> describe;
};

// In a forked child, whose last words (process.h) then lie in side.progress. side outlives it.
void LeaveLastWordsIn(WorkerSide& side);

// Called in the worker. What it throws ends the worker, and is its last word.
using AnswerQuestion = std::function<Frame(const Frame& question, WorkerSide& side)>;

class Worker {
 public:
  Worker();
  ~Worker();  // Kill
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void Start(const AnswerQuestion& answer);
  // A worker that is gone is noticed when its answer is awaited.
  void Ask(const Frame& question);
  // What has come of the answer, without waiting. kEnded: the worker is gone, and reaped, or had to
  // be ended since what it says is no answer; Death() says which.
  enum class Said { kNothing, kAnswer, kEnded };
  Said Listen(Frame* answer);
  void Kill();  // with the processes that it has started

  bool alive() const { return keeper_.running(); }
  pid_t pid() const { return alive() ? keeper_.pid() : -1; }
  int socket() const { return socket_; }  // readable when it has something to say, or has died
  // "ended by SIGSEGV (Segmentation fault): address 0x8"
  const std::string& Death() const { return death_; }
  bool crashed() const { return crashed_; }  // by a signal
  const Progress& progress() const { return shared_->progress; }

  // As of ProgressWatch.
  bool Stuck(double stall_seconds) { return watch_->Stuck(stall_seconds); }
  double StillSeconds() const { return watch_->StillSeconds(); }
  std::string Where() const { return watch_->Where(); }

 private:
  [[noreturn]] void Serve(int socket, const AnswerQuestion& answer);
  Said Bury(const std::string& what_it_said);

  WatchedState* shared_;
  std::optional<ProgressWatch> watch_;
  Keeper keeper_;
  int socket_ = -1;
  std::string received_;  // the beginning of an answer
  std::string death_;
  bool crashed_ = false;
};

// What has come of a piece of work that a worker did.
struct WorkResult {
  bool done = false;
  std::string blob;    // what work returned, if done
  double seconds = 0;  // that it took
  std::string death;   // else: "ended by SIGSEGV (Segmentation fault): address 0x8", "no progress
                       // for 5 s: ..."
};

// How a process ended that should have answered: "ended by SIGSEGV ...", with its last words.
// crashed, if any: whether by a signal.
std::string DeathText(const KeptEnd& end, const Progress& progress, bool* crashed = nullptr);

}  // namespace shardproof
