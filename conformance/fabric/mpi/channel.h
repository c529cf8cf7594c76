// channel.h: how do a child and its supervisor hand each other messages of any size without
// waiting?
//
// One direction of traffic: a heap and a ring of descriptors in memory that both processes have
// mapped at the same address. The sender allocates a message in the heap, fills it and posts it;
// the receiver takes it, uses it where it lies, and gives it back. Neither ever waits for the
// other: what does not fit into a ring stays in a private queue. One thread at a time on each side.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

namespace shardproof::mpi {

struct Posted {
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  int32_t to = -1;  // free for the sender's use: a destination
};

template <class T, size_t kSlots>
struct SharedRing {
  alignas(64) std::atomic<uint64_t> head{0};  // taken so far
  alignas(64) std::atomic<uint64_t> tail{0};  // put so far
  alignas(64) T slots[kSlots];

  bool Put(const T& item) {
    const uint64_t at = tail.load(std::memory_order_relaxed);
    if (at - head.load(std::memory_order_acquire) == kSlots) return false;
    slots[at % kSlots] = item;
    tail.store(at + 1, std::memory_order_release);
    return true;
  }
  bool Take(T* item) {
    const uint64_t at = head.load(std::memory_order_relaxed);
    if (at == tail.load(std::memory_order_acquire)) return false;
    *item = slots[at % kSlots];
    head.store(at + 1, std::memory_order_release);
    return true;
  }
  bool empty() const { return head.load() == tail.load(); }
};

struct ChannelMemory {
  SharedRing<Posted, 2048> posted;
  SharedRing<std::byte*, 2048> returned;
};

// Ranges of a heap. First fit by address, so that few pages are touched.
class Heap {
 public:
  Heap(std::byte* base, uint64_t bytes) : base_(base), free_{{0, bytes}} {}
  std::byte* Allocate(uint64_t bytes);  // aligned to 64; null when there is no room
  void Free(std::byte* data);
  uint64_t high_water() const { return high_water_; }

 private:
  std::byte* base_;
  std::map<uint64_t, uint64_t> free_, used_;  // offset -> size
  uint64_t high_water_ = 0;
};

class ChannelSender {
 public:
  ChannelSender(ChannelMemory* memory, std::byte* heap, uint64_t bytes)
      : memory_(memory), heap_(heap, bytes) {}
  std::byte* Allocate(uint64_t bytes);  // null when there is no room now
  // A message may be posted several times; it is free again when it has come back as often.
  void Post(const Posted& message);
  void Flush();
  bool AllTaken() const { return waiting_.empty() && memory_->posted.empty(); }
  uint64_t high_water() const { return heap_.high_water(); }

 private:
  void Collect();

  ChannelMemory* memory_;
  Heap heap_;
  std::map<std::byte*, int> uses_;
  std::deque<Posted> waiting_;
};

class ChannelReceiver {
 public:
  explicit ChannelReceiver(ChannelMemory* memory) : memory_(memory) {}
  bool Take(Posted* message) { return memory_->posted.Take(message); }
  void Return(std::byte* data);
  bool empty() const { return memory_->posted.empty(); }

 private:
  ChannelMemory* memory_;
  std::deque<std::byte*> waiting_;
};

}  // namespace shardproof::mpi
