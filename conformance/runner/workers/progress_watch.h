// progress_watch.h: does a process that runs engine code still move, and where is it?
#pragma once
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "conformance/fabric/process/last_stack.h"
#include "conformance/fabric/process/process_time.h"
#include "conformance/host/progress.h"

namespace shardproof {

// What the process and the one that watches it share. The process may have been overwritten by
// engine code: nothing in here is believed to be more than text and numbers.
struct WatchedState {
  Progress progress;
  std::atomic<uint64_t> waits{0};  // grows while the host waits inside the fabric
  LastStack stack;
};

// Of a text of Progress, which need not end with a zero.
template <size_t kSize>
std::string TextOf(const char (&field)[kSize]) {
  return {field, strnlen(field, kSize)};
}

class ProgressWatch {
 public:
  explicit ProgressWatch(const WatchedState& state) : state_(state) {}
  void Begin(pid_t pid);  // a process, or a question to it
  // Notices whether anything has moved; call it again and again. Answers whether the process is
  // stuck: neither progress nor waits have moved for stall_seconds of its processor time, or for
  // four times as many by the clock, for code that sleeps; time in which it could not get a core
  // does not count. The suite's own code has 30 times as long.
  bool Stuck(double stall_seconds);
  double StillSeconds() const;  // by the clock, since anything moved
  bool InEngine() const;        // engine code has run for this question
  // "in engine code of train_step 1, after communicate", "waiting for other ranks in ..."
  std::string Where() const;

 private:
  using Clock = std::chrono::steady_clock;
  void Moved();

  const WatchedState& state_;
  pid_t pid_ = -1;
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
