// progress.h: what is the engine doing, for somebody who watches from another process?
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace shardproof {

// Lies in shared memory. Plain stores: the watcher reads it when the writer has died or does not
// move.
struct Progress {
  std::atomic<uint64_t> beats{0};  // grows with every host call that issues something
  std::atomic<int32_t> rank{-1};   // whose code runs now; -1: the suite's own
  std::atomic<int32_t> saves{0};   // the most that a rank has begun
  std::atomic<int32_t> saved{0};   // that have returned, of all ranks together
  char call[64] = {};              // the entry call, "train_step 2"
  char last[32] = {};              // the host call that returned last
  char note[512] = {};             // written by a signal handler

  static void Set(char* field, size_t size, std::string_view text) {
    const size_t n = text.size() < size - 1 ? text.size() : size - 1;
    std::memcpy(field, text.data(), n);
    field[n] = '\0';
  }
};

}  // namespace shardproof
