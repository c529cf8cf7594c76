// engine_time.h: how long did the engines run, without forking, transport and judging?
#pragma once
#include <time.h>

namespace shardproof {

struct EngineTime {
  double seconds = 0;
  double processor_seconds = 0;  // of all threads; those that wait sleep, so this is work
};

// Runs from its construction on.
class EngineClock {
 public:
  EngineTime Elapsed() const {
    const EngineTime now = Now();
    return {now.seconds - began_.seconds, now.processor_seconds - began_.processor_seconds};
  }

 private:
  static double Read(clockid_t clock) {
    timespec at{};
    clock_gettime(clock, &at);
    return static_cast<double>(at.tv_sec) + 1e-9 * static_cast<double>(at.tv_nsec);
  }
  static EngineTime Now() { return {Read(CLOCK_MONOTONIC), Read(CLOCK_PROCESS_CPUTIME_ID)}; }
  EngineTime began_ = Now();
};

}  // namespace shardproof
