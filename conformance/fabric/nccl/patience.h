// patience.h: how does one wait and can still stop? By looking again and again.
#pragma once
#include <chrono>
#include <thread>

#include "conformance/fabric/nccl/rendezvous/rendezvous.h"

namespace shardproof {

// Until done() answers true; false: give_up said so first. give_up may be empty. Yields between
// looks, and rests 20 us between them after the first thousand: other ranks may share the
// processor.
template <class Done>
bool WaitUntil(Done done, const GiveUp& give_up) {
  for (int looks = 0; !done(); ++looks) {
    if (give_up && give_up()) return false;
    if (looks < 1000) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  return true;
}

}  // namespace shardproof
