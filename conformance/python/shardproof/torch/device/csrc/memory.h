// Device and pinned memory: host memory whose blocks the recorder numbers. Fresh and freed bytes
// are 0xff (a NaN), so that what reads them shows in the numbers too.
#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>
#include <set>
#include <string>

namespace shardproof::device {

struct Block {
  char* start = nullptr;
  size_t bytes = 0;
  int64_t id = -1;
  int64_t stream = 0;  // -1: pinned, of no stream
  bool pinned = false;
  std::set<int64_t> used_by;  // other streams, by record_stream or copies that do not wait
  int in_flight = 0;          // transfers whose bytes are still to come or to be read (transfers.h)
  bool dropped = false;       // its owner freed it while transfers were in flight
};

c10::Allocator& DeviceAllocator();
c10::Allocator& PinnedAllocator();

// When does a block that its owner dropped come back?
enum class FreeRule {
  kPool,   // at the next allocation on its stream, as CUDACachingAllocator's blocks may (PyTorch's
           // default)
  kOrder,  // the free is an operation of its stream, as cudaFreeAsync
};
void SetFreeRule(FreeRule rule);
// At the end: what the pools hold comes back to the device.
void DrainPools();
// The stream on which frees wait for other streams is gone (streams.h, DestroyStreams).
void ForgetFreeStream();

// The block that holds this address, or null. Valid while the recorder is held.
Block* FindBlock(const void* address);
void UseOnStream(const void* address, int64_t stream);

// Gives back the bytes of a block whose owner dropped it while a transfer was in flight. The
// recorder is held.
void FreeIfDropped(Block* block);

struct MemoryFigures {
  int64_t allocated = 0, peak = 0, blocks = 0;  // bytes, bytes, live blocks of device memory
};
MemoryFigures Memory();
void ResetPeak();

}  // namespace shardproof::device
