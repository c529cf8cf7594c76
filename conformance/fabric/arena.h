// arena.h: where do one rank's blocks lie, who may reuse their bytes, and which block is this
// address in?
//
// One file in memory, mapped twice: a readable view for the suite (Block::host), and a view without
// any access whose addresses the engine gets for device memory, so that a host access faults.
// Pinned blocks have the address of the readable view. Pages cost nothing until they are written.
// Where the kernel lets us, a rank's views lie at the same addresses in every run.
//
// Reuse is likely but legal. The bytes of a block freed on stream s may go at once to an alloc on s
// (stream order protects them), to others only after FreeExecuted. Not thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "conformance/fabric/fabric.h"

namespace shardproof {

constexpr int kPoison = 0xFF;  // every byte: NaN in floating dtypes, -1 in integers

// What an address points at.
struct Place {
  int32_t rank = -1;
  // The block that owns the bytes now, or that owned them last; -1: none ever did.
  int32_t block = -1;
  uint64_t offset = 0;  // in the block
  uint64_t bytes = 0;   // of the block
  bool live = false;
  bool device_view = false;  // the address is in the view without access
};

class Arena {
 public:
  // Its own memory, or bytes [0, bytes) of fd, which the caller keeps open and may share with
  // another process: a process forked after this call sees the same bytes at the same addresses.
  // Throws std::runtime_error.
  Arena(int32_t rank, uint64_t bytes);
  Arena(int32_t rank, int fd, uint64_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Bookkeeping only, in issue order: contents change when the owner calls Poison. Alloc throws
  // std::runtime_error when the arena is used up.
  Block Alloc(int32_t stream, uint64_t bytes, bool pinned);
  void Free(int32_t stream, const Block& block);  // pinned: counts as executed
  void FreeExecuted(int32_t block);               // the free's place in its stream has been reached
  static void Poison(const Block& block);

  // Forgets all blocks and gives their pages back. REQUIRES: nobody uses them any more.
  void Reset();

  // Safe to call from a handler for SIGSEGV while no other call is running. False: not in this
  // arena.
  bool Describe(uint64_t address, Place* place) const;

  int32_t live_blocks() const { return live_blocks_; }
  uint64_t live_bytes() const { return live_bytes_; }
  uint64_t high_water_bytes() const { return top_; }
  int fd() const { return fd_; }
  std::byte* host_base() const { return host_; }
  uint64_t device_base() const { return device_; }
  uint64_t bytes() const { return bytes_; }

 private:
  enum class Use : uint8_t { kLive, kFreed, kFree };  // kFreed: in issue order, not yet executed
  struct Region {
    uint64_t size = 0;
    Use use = Use::kFree;
    bool pinned = false;
    int32_t stream = -1;    // kFreed: where
    int32_t block = -1;     // owner, or last owner
    uint64_t bytes = 0;     // that it asked for
    uint64_t sequence = 0;  // of not live ones: larger was freed later
  };
  using Regions = std::map<uint64_t, Region>;  // by offset; they tile [0, top_)

  void Map();
  void SetIdle(Regions::iterator region, Use use);  // use: kFreed or kFree
  Regions::iterator Merge(Regions::iterator region);
  Regions::iterator Find(int32_t stream, uint64_t size);

  int32_t rank_;
  int fd_ = -1;
  bool owns_fd_ = false;
  uint64_t bytes_;
  std::byte* host_ = nullptr;
  uint64_t device_ = 0;
  uint64_t top_ = 0;
  Regions regions_;
  std::map<uint64_t, uint64_t> idle_;  // sequence -> offset of regions that are not live
  // Of kFreed ones: (block, sequence) -> offset.
  std::map<std::pair<int32_t, uint64_t>, uint64_t> freed_;
  uint64_t next_sequence_ = 0;
  int32_t next_block_ = 0;
  int32_t live_blocks_ = 0;
  uint64_t live_bytes_ = 0;
};

// "byte 12 of block 7 (64 bytes, freed) of rank 3, touched by the host through its device address"
std::string ToText(const Place& place);

}  // namespace shardproof
