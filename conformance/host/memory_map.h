// memory_map.h: which live block does an address belong to?
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "conformance/abi/shardproof.h"
#include "conformance/fabric/fabric.h"
#include "conformance/trace/event.h"

namespace shardproof {

const char* PurposeName(int32_t purpose);

// Bytes inside one live block.
struct Resolved {
  Range range;  // access is the caller's
  std::byte* host = nullptr;
  bool pinned = false;
};

// Live means allocated and not freed at issue. All refusals name the block and what is wrong with
// the range.
class MemoryMap {
 public:
  void Add(const Block& block, spf_place place, spf_label label);
  // The live block that starts at the address. what names the argument in messages.
  Block StartingAt(uint64_t address, const std::string& what) const {
    return EntryAt(address, what).block;
  }
  spf_place PlaceOf(uint64_t address) const {
    return live_.at(address).place;
  }                               // REQUIRES: a live block starts there
  void Remove(uint64_t address);  // REQUIRES: the same
  // Nothing: the bytes do not lie in one live block.
  std::optional<Resolved> Find(uint64_t address, uint64_t bytes, uint8_t access) const;
  // The same, refused in words. what names the argument there, for example "ops[1].send".
  Resolved Resolve(uint64_t address, uint64_t bytes, uint8_t access, const std::string& what) const;

  uint64_t device_bytes() const { return device_bytes_; }
  uint64_t pinned_bytes() const { return pinned_bytes_; }

 private:
  struct Entry {
    Block block;
    spf_place place;
    spf_label label;
  };
  static std::string Describe(const Entry& entry);
  const Entry* Find(uint64_t address) const;
  const Entry& EntryAt(uint64_t address, const std::string& what) const;

  std::map<uint64_t, Entry> live_;  // by first address
  std::deque<Entry> freed_;         // the most recent ones, for messages
  uint64_t device_bytes_ = 0, pinned_bytes_ = 0;
};

}  // namespace shardproof
