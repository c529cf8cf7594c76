// registered_slab.h: which bytes of one slab does a block get, so that all ranks get the same offsets?
//
// Blocks have sizes of powers of two. What was freed on a stream may be taken again on that stream, which orders it;
// what was freed elsewhere may not. So offsets depend on nothing but the program: ranks that allocate alike have them
// alike.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "conformance/fabric/nccl/gpu.h"

namespace shardproof {

class RegisteredSlab {
 public:
  RegisteredSlab() = default;  // of no bytes
  RegisteredSlab(const GpuMemory& memory, uint64_t bytes) : memory_(memory), bytes_(bytes) {}

  // At least bytes, aligned to 256; null if there is no room.
  GpuMemory Take(int32_t stream, uint64_t bytes);
  void Give(int32_t stream, std::byte* data);  // REQUIRES: taken, and not given back
  bool Holds(const std::byte* data) const { return bytes_ > 0 && data >= memory_.data && data < memory_.data + bytes_; }

  const GpuMemory& memory() const { return memory_; }
  uint64_t bytes() const { return bytes_; }

 private:
  GpuMemory memory_;
  uint64_t bytes_ = 0, top_ = 0;
  std::map<std::pair<int32_t, uint64_t>, std::vector<uint64_t>> spare_;  // offsets by stream and size
  std::map<uint64_t, uint64_t> sizes_;                                   // by offset, of what is taken
};

}  // namespace shardproof
