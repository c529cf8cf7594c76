#include "conformance/fabric/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace shardproof {
namespace {

constexpr uint64_t kAlign = 256;
constexpr uint64_t kDeviceHint = 0x2000'0000'0000, kHostHint = 0x3000'0000'0000;

[[noreturn]] void ThrowErrno(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

void* MapView(int fd, uint64_t bytes, int protection, uint64_t hint) {
  void* view =
      mmap(reinterpret_cast<void*>(hint), bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (view == MAP_FAILED) ThrowErrno("mapping " + std::to_string(bytes) + " bytes of rank memory");
  return view;
}

}  // namespace

Arena::Arena(int32_t rank, uint64_t bytes) : rank_(rank), owns_fd_(true), bytes_(bytes) {
  fd_ = memfd_create("shardproof_rank", MFD_CLOEXEC);
  if (fd_ < 0) ThrowErrno("memfd_create");
  if (ftruncate(fd_, static_cast<off_t>(bytes)) != 0) {
    close(fd_);
    ThrowErrno("sizing rank memory to " + std::to_string(bytes) + " bytes");
  }
  try {
    Map();
  } catch (...) {
    close(fd_);
    throw;
  }
}

Arena::Arena(int32_t rank, int fd, uint64_t bytes) : rank_(rank), fd_(fd), bytes_(bytes) { Map(); }

void Arena::Map() {
  const uint64_t stride = static_cast<uint64_t>(rank_) * ((bytes_ + 0xFFFFF) & ~uint64_t{0xFFFFF});
  host_ = static_cast<std::byte*>(MapView(fd_, bytes_, PROT_READ | PROT_WRITE, kHostHint + stride));
  try {
    device_ = reinterpret_cast<uint64_t>(MapView(fd_, bytes_, PROT_NONE, kDeviceHint + stride));
  } catch (...) {
    munmap(host_, bytes_);
    throw;
  }
}

Arena::~Arena() {
  munmap(host_, bytes_);
  munmap(reinterpret_cast<void*>(device_), bytes_);
  if (owns_fd_) close(fd_);
}

Block Arena::Alloc(int32_t stream, uint64_t bytes, bool pinned) {
  const uint64_t size = std::max(kAlign, (bytes + kAlign - 1) & ~(kAlign - 1));
  // Pinned memory is host-ordered: a free that is still enqueued is not ordered before its use, on
  // any stream.
  constexpr int32_t kNoStream = -2;
  auto found = Find(pinned ? kNoStream : stream, size);
  if (found == regions_.end()) {
    if (size > bytes_ - top_ || size < bytes) {
      throw std::runtime_error("rank " + std::to_string(rank_) + ": no room for " +
                               std::to_string(bytes) + " bytes beside " +
                               std::to_string(live_bytes_) + " live ones in an arena of " +
                               std::to_string(bytes_) + ": make the arena larger");
    }
    found = regions_.emplace(top_, Region{size}).first;
    top_ += size;
  } else {
    idle_.erase(found->second.sequence);
    freed_.erase({found->second.block, found->second.sequence});
    if (found->second.size > size) {
      Region rest = found->second;
      rest.size -= size;
      found->second.size = size;
      const auto tail = regions_.emplace(found->first + size, rest).first;
      SetIdle(tail, rest.use);
    }
  }
  Region& region = found->second;
  region.use = Use::kLive;
  region.pinned = pinned;
  region.stream = -1;
  region.block = next_block_++;
  region.bytes = bytes;
  ++live_blocks_;
  live_bytes_ += bytes;
  Block block;
  block.id = region.block;
  block.host = host_ + found->first;
  block.address = pinned ? reinterpret_cast<uint64_t>(block.host) : device_ + found->first;
  block.bytes = bytes;
  block.pinned = pinned;
  return block;
}

// The latest freed region that fits and may be used, or end.
Arena::Regions::iterator Arena::Find(int32_t stream, uint64_t size) {
  for (auto idle = idle_.rbegin(); idle != idle_.rend(); ++idle) {
    const auto region = regions_.find(idle->second);
    const bool usable = region->second.use == Use::kFree || region->second.stream == stream;
    if (usable && region->second.size >= size) return region;
  }
  return regions_.end();
}

void Arena::SetIdle(Regions::iterator region, Use use) {
  region->second.use = use;
  region->second.sequence = next_sequence_++;
  idle_.emplace(region->second.sequence, region->first);
  if (use == Use::kFreed)
    freed_.emplace(std::pair(region->second.block, region->second.sequence), region->first);
}

void Arena::Free(int32_t stream, const Block& block) {
  const auto region = regions_.find(static_cast<uint64_t>(block.host - host_));
  assert(region != regions_.end() && region->second.use == Use::kLive &&
         region->second.block == block.id);
  --live_blocks_;
  live_bytes_ -= block.bytes;
  region->second.stream = stream;
  SetIdle(region, block.pinned ? Use::kFree : Use::kFreed);
  if (block.pinned) Merge(region);
}

void Arena::FreeExecuted(int32_t block) {
  // Parts of the block may have been reused on its stream already; what is left may have been
  // split.
  std::vector<uint64_t> mine;
  const auto first = freed_.lower_bound({block, 0});
  auto end = first;
  for (; end != freed_.end() && end->first.first == block; ++end) mine.push_back(end->second);
  freed_.erase(first, end);
  for (const uint64_t offset : mine) regions_.find(offset)->second.use = Use::kFree;
  for (const uint64_t offset : mine) {
    const auto region = regions_.find(offset);
    if (region != regions_.end()) Merge(region);  // else joined with the one before
  }
}

// Joins region with free neighbours on both sides; the whole counts as freed when the latest part
// was.
Arena::Regions::iterator Arena::Merge(Regions::iterator region) {
  const auto absorb = [&](Regions::iterator into, Regions::iterator next) {
    idle_.erase(into->second.sequence);
    idle_.erase(next->second.sequence);
    into->second.size += next->second.size;
    into->second.sequence = std::max(into->second.sequence, next->second.sequence);
    idle_.emplace(into->second.sequence, into->first);
    regions_.erase(next);
  };
  const auto next = std::next(region);
  if (next != regions_.end() && next->second.use == Use::kFree) absorb(region, next);
  if (region != regions_.begin()) {
    const auto before = std::prev(region);
    if (before->second.use == Use::kFree) {
      absorb(before, region);
      return before;
    }
  }
  return region;
}

void Arena::Poison(const Block& block) {
  if (block.bytes) std::memset(block.host, kPoison, block.bytes);
}

void Arena::Reset() {
  if (top_) {
    const auto end = static_cast<off_t>(std::min(bytes_, (top_ + 4095) & ~uint64_t{4095}));
    if (fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, end) != 0)
      std::memset(host_, 0, top_);
  }
  regions_.clear();
  idle_.clear();
  freed_.clear();
  top_ = 0;
  next_sequence_ = 0;
  next_block_ = 0;
  live_blocks_ = 0;
  live_bytes_ = 0;
}

bool Arena::Describe(uint64_t address, Place* place) const {
  const auto host = reinterpret_cast<uint64_t>(host_);
  *place = Place{};
  place->rank = rank_;
  place->device_view = address >= device_ && address - device_ < bytes_;
  if (!place->device_view && (address < host || address - host >= bytes_)) return false;
  const uint64_t offset = address - (place->device_view ? device_ : host);
  auto region = regions_.upper_bound(offset);
  if (region == regions_.begin() || offset >= top_) return true;
  --region;
  place->block = region->second.block;
  place->offset = offset - region->first;
  place->bytes = region->second.bytes;
  place->live = region->second.use == Use::kLive;
  return true;
}

std::string ToText(const Place& place) {
  std::string text = "rank " + std::to_string(place.rank) + ": ";
  if (place.block < 0) {
    text += "memory that belongs to no block";
  } else {
    text += "byte " + std::to_string(place.offset) + " of block " + std::to_string(place.block) +
            " (" + std::to_string(place.bytes) + " bytes" + (place.live ? ")" : ", freed)");
  }
  if (place.device_view)
    text += ", touched by the host through its device address: use host_access on pinned memory";
  return text;
}

}  // namespace shardproof
