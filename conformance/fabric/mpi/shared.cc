#include "conformance/fabric/mpi/shared.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <new>
#include <stdexcept>
#include <string>

namespace shardproof::mpi {
namespace {

// Not FUTEX_PRIVATE_FLAG: sleeper and waker are different processes.
long Futex(std::atomic<uint32_t>* word, int operation, uint32_t value,
           const timespec* longest = nullptr) {
  static_assert(sizeof(*word) == 4 && std::atomic<uint32_t>::is_always_lock_free);
  return syscall(SYS_futex, word, operation, value, longest, nullptr, 0);
}

}  // namespace

void SharedSignal::Raise() {
  RaiseLate();
  WakeLate();
}

void SharedSignal::WakeLate() {
  for (const std::atomic<uint64_t>* sleeper : {&asleep_, &napping_}) {
    // The count is read after what was seen: where they differ now, they will always. So one wake
    // is enough: nobody goes back to sleep on what has passed.
    const uint64_t seen = sleeper->load();
    if (seen != 0 && seen != uint64_t{count_.load()} + 1 && woken_.exchange(seen) != seen)
      Futex(&count_, FUTEX_WAKE, INT_MAX);
  }
}

void SharedSignal::Sleep(uint32_t seen) {
  asleep_.store(uint64_t{seen} + 1);
  while (count_.load() == seen) Futex(&count_, FUTEX_WAIT, seen);
  asleep_.store(0);
}

void SharedSignal::Nap(uint32_t seen, std::chrono::nanoseconds longest) {
  constexpr int64_t kSecond = 1'000'000'000;
  if (longest.count() <= 0) return;
  const timespec time{longest.count() / kSecond, longest.count() % kSecond};
  napping_.store(uint64_t{seen} + 1);
  Futex(&count_, FUTEX_WAIT, seen, &time);
  napping_.store(0);
}

SharedMemory::SharedMemory(uint64_t heap_bytes)
    : heap_bytes_((heap_bytes + 4095) & ~uint64_t{4095}) {
  void* memory = mmap(nullptr, kHead + 2 * heap_bytes_, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::runtime_error("mapping " + std::to_string(2 * heap_bytes_) +
                             " bytes for messages: " + std::strerror(errno) +
                             ": lower MpiOptions::message_bytes");
  }
  base_ = static_cast<std::byte*>(memory);
  shared_ = new (base_) Shared;
}

SharedMemory::~SharedMemory() { munmap(base_, kHead + 2 * heap_bytes_); }

void SharedMemory::Reset() {
  constexpr uint64_t kKeep = 32 << 20;
  shared_ = new (base_) Shared;
  for (std::byte* heap : {heap_to_child(), heap_to_supervisor()}) {
    if (heap_bytes_ > kKeep) madvise(heap + kKeep, heap_bytes_ - kKeep, MADV_REMOVE);
  }
}

}  // namespace shardproof::mpi
