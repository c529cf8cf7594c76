// shared.h: what do a rank's child and its supervisor know of each other?
//
// One anonymous shared mapping, made before the first fork, so that both see it at the same
// address.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "conformance/fabric/mpi/channel.h"
#include "conformance/fabric/process/last_stack.h"

namespace shardproof::mpi {

// A word that one side counts up and the other sleeps on, across processes.
class SharedSignal {
 public:
  uint32_t Now() const { return count_.load(); }
  void Raise();  // wakes whoever sleeps
  // Counts up without a system call: whoever is awake sees it before it sleeps. Who sleeps goes on
  // sleeping until the next Raise or WakeLate.
  void RaiseLate() { count_.fetch_add(1); }
  void WakeLate();  // wakes whoever sleeps through what was raised late
  // Sleeps until Now() is not seen. Says to others that it does so.
  void Sleep(uint32_t seen);
  // The same for at most so long. Whoever naps does not count as asleep.
  void Nap(uint32_t seen, std::chrono::nanoseconds longest);
  // Somebody sleeps, and nothing was raised since it looked for work. Exact: never true while work
  // is on the way.
  bool Asleep() const { return asleep_.load() == uint64_t{count_.load()} + 1; }

 private:
  std::atomic<uint32_t> count_{0};
  std::atomic<uint64_t> asleep_{0}, napping_{0};  // seen + 1, or 0
  std::atomic<uint64_t> woken_{0};                // the latest of these that was woken
};

struct ChildState {
  SharedSignal device, host;           // wake the child's two threads
  std::atomic<uint64_t> progress{0};   // work issued or completed, waits that ended, messages taken
  std::atomic<uint32_t> abort{0};      // set by the supervisor
  std::atomic<uint32_t> unwinding{0};  // the host thread has seen the abort
  std::atomic<uint32_t> finished{0};   // rank_main has returned and its result is posted
  std::atomic<uint64_t> calls{0};      // fabric calls so far
  std::atomic<const char*> call{nullptr};  // the latest, a literal
  std::atomic<uint32_t> blocking{0};       // it has not returned yet
  char call_about[128] = {};               // its object: "comm (stream 2)"
  char body[128] = {};                     // the local entry that runs now, or empty
  char last_words[512] = {};
  LastStack stack;
};

struct Shared {
  ChildState state;
  ChannelMemory to_child, to_supervisor;
};

// The mapping: a Shared and two heaps of heap_bytes. Pages cost nothing until they are written.
class SharedMemory {
 public:
  explicit SharedMemory(uint64_t heap_bytes);  // throws std::runtime_error
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  Shared& operator*() const { return *shared_; }
  Shared* operator->() const { return shared_; }
  std::byte* heap_to_child() const { return base_ + kHead; }
  std::byte* heap_to_supervisor() const { return base_ + kHead + heap_bytes_; }
  uint64_t heap_bytes() const { return heap_bytes_; }

  // Whether a message that the child has posted lies where the child's messages lie.
  bool HoldsForSupervisor(const std::byte* data, uint64_t bytes) const {
    const std::byte* heap = heap_to_supervisor();
    return data >= heap && data <= heap + heap_bytes_ &&
           bytes <= static_cast<uint64_t>(heap + heap_bytes_ - data);
  }

  // For the next child. REQUIRES: no child lives and no transfer is under way. Large heaps give
  // their pages back.
  void Reset();

 private:
  static constexpr uint64_t kHead = (sizeof(Shared) + 4095) & ~uint64_t{4095};
  std::byte* base_ = nullptr;
  uint64_t heap_bytes_;
  Shared* shared_ = nullptr;
};

}  // namespace shardproof::mpi
