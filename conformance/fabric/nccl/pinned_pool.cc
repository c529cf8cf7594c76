#include "conformance/fabric/nccl/pinned_pool.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace shardproof {

std::byte* PinnedPool::Take(uint64_t bytes) {
  const uint64_t size = std::bit_ceil(std::max<uint64_t>(bytes, 256));
  std::vector<std::byte*>& spare = spare_[size];
  std::byte* data = nullptr;
  if (!spare.empty()) {
    data = spare.back();
    spare.pop_back();
  } else if (size > slab_bytes_) {
    data = gpu_.AllocPinned(size);
    total_ += size;
  } else {
    if (rest_ < size) {
      next_ = gpu_.AllocPinned(slab_bytes_);
      rest_ = slab_bytes_;
      total_ += slab_bytes_;
    }
    data = next_;
    next_ += size;
    rest_ -= size;
  }
  taken_[data] = size;
  return data;
}

GpuMemory PinnedPool::TakeRegistrable(uint64_t bytes) {
  std::vector<GpuMemory>& spare = registrable_[bytes];
  if (spare.empty()) return gpu_.AllocRegistrable(bytes);
  const GpuMemory slab = spare.back();
  spare.pop_back();
  return slab;
}

void PinnedPool::Give(std::byte* data) {
  const auto found = taken_.find(data);
  assert(found != taken_.end());
  spare_[found->second].push_back(data);
  taken_.erase(found);
}

}  // namespace shardproof
