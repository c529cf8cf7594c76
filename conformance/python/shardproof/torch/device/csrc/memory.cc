#include "memory.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "device.h"
#include "recorder.h"
#include "streams.h"

namespace shardproof::device {
namespace {

constexpr int64_t kNoStream = -1;  // of pinned blocks

struct Pools {
  std::map<const char*, Block*> live;                // by address
  std::map<int64_t, std::vector<int64_t>> released;  // blocks that the pool of a stream holds
  int64_t next_block = 0;
  int64_t free_stream = -1;  // where frees wait for the other streams that used a block
  FreeRule rule = FreeRule::kPool;
  MemoryFigures figures;
};
Pools& ThePools() {
  static auto* pools = new Pools;  // never freed: tensors of the interpreter outlive it
  return *pools;
}

void WriteFree(int64_t block, int64_t stream) {
  Row row("free");
  row.Number("a", block);
  if (stream != kNoStream) row.Number("s", stream);
  TheRecorder().Write(row);
}

void TakeBack(int64_t stream) {
  auto& released = ThePools().released;
  const auto found = released.find(stream);
  if (found == released.end()) return;
  const std::vector<int64_t> blocks = std::move(found->second);
  released.erase(found);
  for (const int64_t block : blocks) WriteFree(block, stream);
}

// A block that record_stream named goes back when those streams are done with it
// (CUDACachingAllocator.cpp, free and insert_events). The allocator asks without waiting, so no
// stream of the program waits: one of its own does.
void FreeAfterAllUsers(const Block& block) {
  Pools& pools = ThePools();
  if (pools.free_stream < 0) pools.free_stream = NewStream("allocator", 0);
  const auto after = [&](int64_t stream) {
    Event* event = NewEvent();
    RecordEvent(event, stream);
    WaitEvent(*event, pools.free_stream);
    DropEvent(event);
  };
  for (const int64_t stream : block.used_by) after(stream);
  after(block.stream);
  WriteFree(block.id, pools.free_stream);
}

void WriteEnd(const Block& block) {
  Pools& pools = ThePools();
  if (block.pinned) {
    // Its bytes come back when the streams that copy from or to it without waiting are done, which
    // the allocator asks, so that the host never waits (CachingHostAllocatorImpl, free and
    // process_events). When that is is not known: at the latest when all is drained.
    if (block.used_by.empty()) {
      WriteFree(block.id, kNoStream);
    } else {
      TheRecorder().Write(Row("release").Number("a", block.id));
      pools.released[kNoStream].push_back(block.id);
    }
    return;
  }
  pools.figures.allocated -= static_cast<int64_t>(block.bytes);
  --pools.figures.blocks;
  const bool pool = pools.rule == FreeRule::kPool;
  if (pool) TheRecorder().Write(Row("release").Number("a", block.id));
  if (!block.used_by.empty()) {
    FreeAfterAllUsers(block);
  } else if (pool) {
    pools.released[block.stream].push_back(block.id);
  } else {
    WriteFree(block.id, block.stream);
  }
}

void FreeBytes(Block* block) {
  std::memset(block->start, 0xff, block->bytes);
  std::free(block->start);
  delete block;
}

void Drop(void* context) {
  auto* block = static_cast<Block*>(context);
  if (TheRecorder().abandoned()) return;  // a forked child: the parent's block
  Hold hold;
  WriteEnd(*block);
  block->dropped = true;
  ThePools().live.erase(block->start);
  if (block->in_flight == 0) FreeBytes(block);
}

struct Allocator final : c10::Allocator {
  explicit Allocator(bool of_host) : pinned(of_host) {}

  c10::DataPtr allocate(size_t bytes) override {
    TORCH_CHECK(!TheRecorder().abandoned(),
                "shardproof: device work in a forked process; start it with the method \"spawn\", "
                "or keep it to the "
                "CPU");
    Hold hold;
    const c10::Device device = pinned ? c10::Device(c10::kCPU) : CurrentDevice();
    if (bytes == 0) return {nullptr, device};
    Pools& pools = ThePools();
    if (!pinned) TakeBack(CurrentStream());
    auto* block = new Block;
    block->start = static_cast<char*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64));
    TORCH_CHECK(block->start != nullptr, "shardproof: no memory for ", bytes, " bytes");
    block->bytes = bytes;
    block->id = pools.next_block++;
    block->stream = pinned ? kNoStream : CurrentStream();
    block->pinned = pinned;
    std::memset(block->start, 0xff, bytes);
    pools.live[block->start] = block;
    Row row("alloc");
    row.Number("a", block->id).Number("k", static_cast<int64_t>(bytes));
    if (pinned) {
      row.Number("id", 1);
    } else {
      row.Number("s", block->stream);
      pools.figures.allocated += static_cast<int64_t>(bytes);
      pools.figures.peak = std::max(pools.figures.peak, pools.figures.allocated);
      ++pools.figures.blocks;
    }
    TheRecorder().Write(row.Append(TheRecorder().LabelText()));
    return {block->start, block, &Drop, device};
  }

  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

  bool pinned;
};

Allocator g_device(false);
Allocator g_pinned(true);
REGISTER_ALLOCATOR(kDeviceType, &g_device);

}  // namespace

c10::Allocator& DeviceAllocator() { return g_device; }
c10::Allocator& PinnedAllocator() { return g_pinned; }

void SetFreeRule(FreeRule rule) { ThePools().rule = rule; }

void ForgetFreeStream() { ThePools().free_stream = -1; }

void DrainPools() {
  Hold hold;
  auto& released = ThePools().released;
  while (!released.empty()) TakeBack(released.begin()->first);
}

Block* FindBlock(const void* address) {
  const auto& live = ThePools().live;
  auto found = live.upper_bound(static_cast<const char*>(address));
  if (found == live.begin()) return nullptr;
  Block* block = (--found)->second;
  return static_cast<const char*>(address) < block->start + block->bytes ? block : nullptr;
}

void UseOnStream(const void* address, int64_t stream) {
  Hold hold;
  Block* block = FindBlock(address);
  if (block != nullptr && stream != block->stream) block->used_by.insert(stream);
}

MemoryFigures Memory() {
  Hold hold;
  return ThePools().figures;
}

void ResetPeak() {
  Hold hold;
  ThePools().figures.peak = ThePools().figures.allocated;
}

void FreeIfDropped(Block* block) {
  if (block->dropped && block->in_flight == 0) FreeBytes(block);
}

}  // namespace shardproof::device
