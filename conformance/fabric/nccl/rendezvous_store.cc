#include "conformance/fabric/nccl/rendezvous_store.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <stdexcept>

namespace shardproof {

void RestBeforeLook(int round) {
  if (round < 20) {
    sched_yield();
    return;
  }
  const long microseconds = std::min(50L * (round / 20), 1000L);
  const timespec nap{0, microseconds * 1000};
  nanosleep(&nap, nullptr);
}

std::optional<std::string> StoreRendezvous::Get(const std::string& key, const GiveUp& give_up) {
  for (int round = 0;; ++round) {
    if (std::optional<std::string> bytes = store_.Look(Named(key))) return bytes;
    if (Aborted() || (give_up && give_up())) return std::nullopt;
    RestBeforeLook(round);
  }
}

std::optional<std::string> StoreRendezvous::Aborted() {
  if (std::optional<std::string> reason = store_.Look(prefix_ + "!")) return reason;
  return store_.Broken();
}

void MemoryTable::Put(const std::string& key, const std::string& bytes) {
  const std::lock_guard lock(mutex_);
  values_.emplace(key, bytes);
}

std::optional<std::string> MemoryTable::Look(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto at = values_.find(key);
  if (at == values_.end()) return std::nullopt;
  return at->second;
}

void MemoryTable::Forget(const std::string& prefix) {
  const std::lock_guard lock(mutex_);
  std::erase_if(values_, [&](const auto& row) { return row.first.starts_with(prefix); });
}

std::unique_ptr<Store> MemoryStore::ForChild() {
  throw std::runtime_error(
      "a table in memory has no end for a forked process: use a folder or TCP");
}

}  // namespace shardproof
