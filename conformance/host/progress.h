// progress.h: what is the engine doing, for somebody who watches from another process?
#pragma once
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace shardproof {

// Lies in shared memory. Plain stores: the watcher reads it when the writer has died or does not
// move.
struct Progress {
  // Grows with every host call that issues something, and with device work that this process does.
  std::atomic<uint64_t> beats{0};
  std::atomic<int32_t> rank{-1};  // whose code runs now; -1: the suite's own
  std::atomic<int32_t> saves{0};  // the most that a rank has begun
  std::atomic<int32_t> saved{0};  // that have returned, of all ranks together
  char call[64] = {};             // the entry call, "train_step 2"
  char last[32] = {};             // the host call of it that returned last; empty: none yet
  char earlier[96] = {};          // the last one of the entry calls before it, "launch in create"
  char note[512] = {};            // written by a signal handler
  // What was printed, if standard output is a file whose place tells (runner/workers/printed.h):
  // while whose code ran, and where that ends.
  static constexpr uint32_t kStretches = 512;
  struct Stretch {
    int32_t rank = -1;
    uint32_t end = 0;
  };
  std::atomic<bool> prints{false};
  std::atomic<uint32_t> stretches{0};
  Stretch stretch[kStretches];

  // From here on the code of this rank runs; in the process that prints.
  void Enter(int32_t next) {
    const int32_t before = rank.exchange(next, std::memory_order_relaxed);
    if (before == next || !prints.load(std::memory_order_relaxed)) return;
    const off_t end = lseek(STDOUT_FILENO, 0, SEEK_CUR);
    const uint32_t n = stretches.load(std::memory_order_relaxed);
    const uint32_t noted = n == 0 ? 0 : stretch[n - 1].end;
    if (end <= static_cast<off_t>(noted) || n >= kStretches) return;
    stretch[n] = {before, static_cast<uint32_t>(end)};
    stretches.store(n + 1, std::memory_order_release);
  }

  static void Set(char* field, size_t size, std::string_view text) {
    const size_t n = text.size() < size - 1 ? text.size() : size - 1;
    std::memcpy(field, text.data(), n);
    field[n] = '\0';
  }

  // "train_step 2, after launch", as far as anything is known. What was overwritten need not end
  // with a zero.
  std::string Where() const {
    const auto text = [](const char* field, size_t size) {
      return std::string(field, strnlen(field, size));
    };
    std::string where = text(call, sizeof call);
    if (last[0] != '\0') return where + ", after " + text(last, sizeof last);
    where += ", before a host call of it returned";
    if (earlier[0] != '\0') where += " (the last one: " + text(earlier, sizeof earlier) + ")";
    return where;
  }
};

}  // namespace shardproof
