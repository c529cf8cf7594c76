// Blocks of memory, poisoned when they begin and when they end.
#include <algorithm>
#include <cassert>
#include <cstring>
#include <stdexcept>

#include "conformance/fabric/arena.h"
#include "conformance/fabric/nccl/nccl_fabric_internal.h"

namespace shardproof {

Block NcclFabric::Alloc(int32_t stream, uint64_t bytes, bool pinned) {
  Block block;
  Try("alloc of " + std::to_string(bytes) + " bytes", [&] {
    if (!pinned) {
      block = Begin(stream, bytes, gpu_.Alloc(At(streams_, stream), std::max<uint64_t>(bytes, 1)));
      return;
    }
    Block made;
    made.bytes = bytes;
    made.pinned = true;
    made.host = pinned_.Take(bytes);
    made.address = reinterpret_cast<uint64_t>(made.host);
    std::memset(made.host, kPoison, bytes);
    made.id = next_block_++;
    live_[made.id] = block = made;
    ++live_blocks_;
  });
  return block;
}

Block NcclFabric::Begin(int32_t stream, uint64_t bytes, const GpuMemory& memory) {
  Block block;
  block.id = next_block_++;
  block.bytes = bytes;
  block.host = memory.data;
  block.address = memory.address;
  live_[block.id] = block;
  ++live_blocks_;
  Poison(stream, block);
  ledger_.Local(stream, "alloc of block " + std::to_string(block.id));
  return block;
}

void NcclFabric::Poison(int32_t stream, const Block& block) {
  if (options_.poison && block.bytes > 0) QueueOf(stream).Fill(block.host, kPoison, block.bytes);
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
    Poison(stream, mine);
    if (const auto had = registrable_.find(mine.host); had != registrable_.end()) {
      spare_registrable_[{stream, mine.bytes}].push_back(had->second.memory);
    } else {
      gpu_.Free(At(streams_, stream), mine.host);
    }
    ledger_.Local(stream, "free of block " + std::to_string(mine.id));
  });
}

}  // namespace shardproof
