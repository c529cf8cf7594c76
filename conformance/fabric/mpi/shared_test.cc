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

using Rest = void (*)(SharedSignal& signal, uint32_t seen);
void Sleep(SharedSignal& signal, uint32_t seen) { signal.Sleep(seen); }
void Nap(SharedSignal& signal, uint32_t seen) { signal.Nap(seen, 1h); }

// Rests until so much was raised; false: it rests for a minute. What one test leaves asleep ends
// with the program, so signals are static.
bool RestsUntil(SharedSignal& signal, uint32_t last, Rest rest) {
  auto over = std::make_shared<std::promise<void>>();
  std::thread([&signal, last, rest, over] {
    for (uint32_t seen = signal.Now(); seen < last; seen = signal.Now()) rest(signal, seen);
    over->set_value();
  }).detach();
  return over->get_future().wait_for(60s) == std::future_status::ready;
}

// One raises again as soon as what it raised was seen, or so; a third looks all the time who rests
// late.
bool NoneIsLost(SharedSignal& signal, Rest rest) {
  constexpr uint32_t kRaises = 300'000;
  std::atomic<bool> over{false};
  std::thread raises([&] {
    for (uint32_t raise = 0; raise < kRaises && !over; ++raise) {
      for (int looks = 0; looks < 8 && !signal.Asleep() && !over; ++looks)
        std::this_thread::yield();
      signal.Raise();
    }
  });
  std::thread looks([&] {
    while (!over) signal.WakeLate();
  });
  const bool none = RestsUntil(signal, kRaises, rest);
  over = true;
  raises.join();
  looks.join();
  return none;
}

TEST(SharedSignalTest, NoWakeOfASleeperIsLost) {
  static SharedSignal signal;
  EXPECT_TRUE(NoneIsLost(signal, Sleep));
}

TEST(SharedSignalTest, NoWakeOfANapIsLost) {
  static SharedSignal signal;
  EXPECT_TRUE(NoneIsLost(signal, Nap));
}

TEST(SharedSignalTest, WhatIsRaisedLateWaitsForAWake) {
  static SharedSignal signal;
  std::thread waker([&] {
    while (!signal.Asleep()) std::this_thread::yield();
    signal.RaiseLate();
    EXPECT_FALSE(signal.Asleep()) << "work is on the way";
    signal.WakeLate();
  });
  EXPECT_TRUE(RestsUntil(signal, 1, Sleep));
  waker.join();
}

}  // namespace
}  // namespace shardproof::mpi
