// process_time.h: how long has a process had the processor, and how long could it not get one?
//
// A clock on the wall says little about a process on a busy machine. What it was kept from running
// is no time in which it stood still.
#pragma once
#include <sys/types.h>

#include <chrono>

namespace shardproof {

// Seconds so far.
struct ProcessTime {
  double ran = 0;     // all its threads together, also those that have ended
  double queued = 0;  // threads that live, all together: ready to run, without a core. 0 where the
                      // kernel does not count it
};

// clock_getcpuclockid(3); Linux: proc(5), /proc/PID/task/TID/schedstat. 0 for a process that is
// gone.
ProcessTime ProcessTimeOf(pid_t process);

// What a process has made of the time since a moment.
class Span {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Span(pid_t process) : process_(process), began_(Clock::now()) {
    at_began_ = ProcessTimeOf(process);
  }
  // By the clock.
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }
  double Ran() const { return ProcessTimeOf(process_).ran - at_began_.ran; }
  // By the clock, without the time in which it was kept from running. Never more than Seconds().
  double Free() const;

 private:
  pid_t process_;
  Clock::time_point began_;
  ProcessTime at_began_;
};

}  // namespace shardproof
