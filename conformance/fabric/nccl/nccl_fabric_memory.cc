// Blocks of memory, poisoned when they begin and when they end.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "conformance/fabric/arena.h"
#include "conformance/fabric/nccl/nccl_fabric_internal.h"

namespace shardproof {

Block NcclFabric::Alloc(int32_t stream, uint64_t bytes, bool pinned) {
  Block block;
  Try("alloc of " + std::to_string(bytes) + " bytes", [&] {
    Block made;
    made.bytes = bytes;
    made.pinned = pinned;
    if (pinned) {
      made.host = pinned_.Take(bytes);
      made.address = reinterpret_cast<uint64_t>(made.host);
      std::memset(made.host, kPoison, bytes);
    } else {
      const GpuMemory memory = gpu_.Alloc(At(streams_, stream), std::max<uint64_t>(bytes, 1));
      made.host = memory.data;
      made.address = memory.address;
      if (bytes > 0) QueueOf(stream).Fill(memory.data, kPoison, bytes);
      ledger_.Local(stream, "alloc of block " + std::to_string(next_block_));
    }
    made.id = next_block_++;
    live_[made.id] = block = made;
    ++live_blocks_;
  });
  return block;
}

void NcclFabric::Free(int32_t stream, const Block& block) {
  if (block.id < 0) return;
  --live_blocks_;
  Try("free of block " + std::to_string(block.id), [&] {
    const auto found = live_.find(block.id);
    assert(found != live_.end());
    const Block mine = found->second;
    live_.erase(found);
    if (mine.pinned) {
      std::memset(mine.host, kPoison, mine.bytes);
      return pinned_.Give(mine.host);
    }
    if (mine.bytes > 0) QueueOf(stream).Fill(mine.host, kPoison, mine.bytes);
    gpu_.Free(At(streams_, stream), mine.host);
    ledger_.Local(stream, "free of block " + std::to_string(mine.id));
  });
}

}  // namespace shardproof
