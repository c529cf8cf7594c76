#include "conformance/fabric/nccl/registered_slab.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace shardproof {

GpuMemory RegisteredSlab::Take(int32_t stream, uint64_t bytes) {
  if (bytes > bytes_) return {};
  const uint64_t size = std::bit_ceil(std::max<uint64_t>(bytes, 256));
  std::vector<uint64_t>& spare = spare_[{stream, size}];
  uint64_t offset = top_;
  if (!spare.empty()) {
    offset = spare.back();
    spare.pop_back();
  } else if (size > bytes_ - top_) {
    return {};
  } else {
    top_ += size;
  }
  sizes_[offset] = size;
  return {memory_.data + offset, memory_.address + offset};
}

void RegisteredSlab::Give(int32_t stream, std::byte* data) {
  const auto offset = static_cast<uint64_t>(data - memory_.data);
  const auto found = sizes_.find(offset);
  assert(found != sizes_.end());
  spare_[{stream, found->second}].push_back(offset);
  sizes_.erase(found);
}

}  // namespace shardproof
