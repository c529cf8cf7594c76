// in_parallel.h: how is one piece of work done for many things on all CPUs?
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace shardproof {

// make() gives a thread its own work; work(i) is called once for each i < count, by some thread.
// Returns when all are done, and rethrows what the one with the least i threw.
template <typename Make>
void InParallel(size_t count, const Make& make) {
  std::vector<std::exception_ptr> errors(count);
  std::atomic<size_t> next = 0;
  const auto run = [&] {
    auto work = make();
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  const size_t most = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> others(std::max<size_t>(1, std::min(most, count)) - 1);
  for (std::thread& thread : others) thread = std::thread(run);
  run();
  for (std::thread& thread : others) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace shardproof
