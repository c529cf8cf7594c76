#include "conformance/fabric/mpi/shared.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>

namespace shardproof::mpi {
namespace {

using namespace std::chrono_literals;

// Sleeps until so much was raised; false: it sleeps for a minute.
bool SleepsUntil(SharedSignal& signal, uint32_t last) {
  auto over = std::make_shared<std::promise<void>>();
  std::thread([&signal, last, over] {
    for (uint32_t seen = signal.Now(); seen < last; seen = signal.Now()) signal.Sleep(seen);
    over->set_value();
  }).detach();  // a sleeper that nobody wakes ends with the program
  return over->get_future().wait_for(60s) == std::future_status::ready;
}

// One raises as soon as the other sleeps; a third looks all the time who sleeps late.
TEST(SharedSignalTest, NoWakeOfTwoWakersIsLost) {
  constexpr uint32_t kRaises = 300'000;
  static SharedSignal signal;  // outlives a sleeper
  std::atomic<bool> over{false};
  std::thread raises([&] {
    for (uint32_t raise = 0; raise < kRaises && !over; ++raise) {
      while (!signal.Asleep() && !over) std::this_thread::yield();
      signal.Raise();
    }
  });
  std::thread looks([&] {
    while (!over) signal.WakeLate();
  });
  EXPECT_TRUE(SleepsUntil(signal, kRaises));
  over = true;
  raises.join();
  looks.join();
}

TEST(SharedSignalTest, WhatIsRaisedLateWaitsForAWake) {
  static SharedSignal signal;  // outlives a sleeper
  std::thread waker([&] {
    while (!signal.Asleep()) std::this_thread::yield();
    signal.RaiseLate();
    EXPECT_FALSE(signal.Asleep()) << "work is on the way";
    signal.WakeLate();
  });
  EXPECT_TRUE(SleepsUntil(signal, 1));
  waker.join();
}

}  // namespace
}  // namespace shardproof::mpi
