#include "conformance/host/memory_map.h"

#include <iterator>

#include "conformance/host/refusal.h"

namespace shardproof {

const char* PurposeName(int32_t purpose) {
  static constexpr const char* kNames[] = {
      "other",         "param_shard",   "param_full",      "grad",      "grad_shard", "main_param",
      "optimizer",     "activation",    "activation_grad", "scratch",   "norm",       "outer_grad",
      "expert_tokens", "expert_counts", "pipeline",        "checkpoint"};
  constexpr auto kCount = static_cast<int32_t>(std::size(kNames));
  return purpose >= 0 && purpose < kCount ? kNames[purpose] : "unknown purpose";
}

void MemoryMap::Add(const Block& block, spf_place place, spf_label label) {
  live_[block.address] = {block, place, label};
  (block.pinned ? pinned_bytes_ : device_bytes_) += block.bytes;
}

std::string MemoryMap::Describe(const Entry& entry) {
  return "block " + std::to_string(entry.block.id) + " (" + PurposeName(entry.label.purpose) +
         ", " + std::to_string(entry.block.bytes) + " bytes)";
}

const MemoryMap::Entry* MemoryMap::Find(uint64_t address) const {
  auto at = live_.upper_bound(address);
  if (at == live_.begin()) return nullptr;
  --at;
  const Block& block = at->second.block;
  return address - block.address < block.bytes ? &at->second : nullptr;
}

const MemoryMap::Entry& MemoryMap::EntryAt(uint64_t address, const std::string& what) const {
  const auto at = live_.find(address);
  if (at != live_.end()) return at->second;
  if (const Entry* inside = Find(address)) {
    throw Refusal(what + " lies " + std::to_string(address - inside->block.address) +
                  " bytes inside " + Describe(*inside) +
                  ": pass the address that mem_alloc returned");
  }
  for (const Entry& entry : freed_) {
    if (entry.block.address == address)
      throw Refusal(Describe(entry) + " was freed before: free it once", Breaks::kGE18);
  }
  throw Refusal("no live block starts at " + what + ": pass what mem_alloc of this host returned",
                Breaks::kGE18);
}

void MemoryMap::Remove(uint64_t address) {
  const auto at = live_.find(address);
  const Block& block = at->second.block;
  (block.pinned ? pinned_bytes_ : device_bytes_) -= block.bytes;
  freed_.push_front(at->second);
  if (freed_.size() > 256) freed_.pop_back();
  live_.erase(at);
}

std::optional<Resolved> MemoryMap::Find(uint64_t address, uint64_t bytes, uint8_t access) const {
  const Entry* entry = Find(address);
  if (entry == nullptr) return std::nullopt;
  const uint64_t offset = address - entry->block.address;
  if (bytes > entry->block.bytes - offset) return std::nullopt;
  Resolved resolved;
  resolved.range = {entry->block.id, access, static_cast<int64_t>(offset),
                    static_cast<int64_t>(bytes)};
  resolved.host = entry->block.host + offset;
  resolved.pinned = entry->block.pinned;
  return resolved;
}

Resolved MemoryMap::Resolve(uint64_t address, uint64_t bytes, uint8_t access,
                            const std::string& what) const {
  if (const std::optional<Resolved> found = Find(address, bytes, access)) return *found;
  if (address == 0)
    throw Refusal(what + " is 0: the table entry or address was never set", Breaks::kGE18);
  const Entry* entry = Find(address);
  if (entry == nullptr) {
    for (const Entry& old : freed_) {
      if (address - old.block.address < old.block.bytes) {
        throw Refusal(what + " lies in " + Describe(old) +
                          ", which has been freed: keep it until its last use",
                      Breaks::kGE18);
      }
    }
    throw Refusal(what +
                      " lies in no block of this host: pass an address that mem_alloc returned, "
                      "plus an offset",
                  Breaks::kGE18);
  }
  throw Refusal(what + " needs " + std::to_string(bytes) + " bytes at offset " +
                    std::to_string(address - entry->block.address) + " of " + Describe(*entry) +
                    ": the range must lie inside one live block",
                Breaks::kGE18);
}

}  // namespace shardproof
