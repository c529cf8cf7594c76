// polite_wait.h: how does a process wait for what it must poll, with more processes than cores?
//
// It yields a few times and then sleeps, the longer the longer nothing has come, and those that
// have work get the cores. What comes is noticed late by a quarter of the wait: 30 us at least, 2
// ms at most.
#pragma once
#include <algorithm>
#include <chrono>
#include <thread>

namespace shardproof::mpi {

class PoliteWait {
 public:
  // Between two looks.
  void Rest() {
    using std::chrono::microseconds;
    if (++looks_ < 4) return std::this_thread::yield();
    const auto waited =
        std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - began_);
    std::this_thread::sleep_for(
        std::clamp(waited / 4, microseconds(kLeastNap), microseconds(kMostNap)));
  }

 private:
  static constexpr int kLeastNap = 30, kMostNap = 2000;

  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  int looks_ = 0;
};

}  // namespace shardproof::mpi
