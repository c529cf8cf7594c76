// polite_wait.h: how does a process wait for what it must poll, with more processes than cores?
//
// It yields a few times and then sleeps, the longer the longer nothing has come, and those that
// have work get the cores. What comes is noticed late by a quarter of the wait: 30 us at least (100
// where there are more ranks than cores: looking often takes the cores from those that work), 2 ms
// at most. With kSteadily, for measurements, always by 100 us: more would add to what is measured,
// less would take the cores from it.
#pragma once
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace shardproof::mpi {

class PoliteWait {
 public:
  enum Looks { kLessAndLess, kSteadily };
  explicit PoliteWait(int32_t ranks, Looks looks = kLessAndLess)
      : least_(ranks > Cores() || looks == kSteadily ? 100 : 30),
        most_(looks == kSteadily ? 100 : 2000) {}
  // Something has come.
  void Restart() {
    began_ = std::chrono::steady_clock::now();
    looks_ = 0;
  }
  // Between two looks.
  void Rest() {
    using std::chrono::microseconds;
    if (++looks_ < 4) return std::this_thread::yield();
    const auto waited =
        std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - began_);
    std::this_thread::sleep_for(NapAfter(waited));
  }
  // How long the next sleep is, when nothing has come for so long.
  std::chrono::microseconds NapAfter(std::chrono::microseconds waited) const {
    return std::clamp(waited / 4, least_, most_);
  }

 private:
  // Those that this process may use.
  static int32_t Cores() {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    return sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
  }

  std::chrono::microseconds least_, most_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  int looks_ = 0;
};

}  // namespace shardproof::mpi
