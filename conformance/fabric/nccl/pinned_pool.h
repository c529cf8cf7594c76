// pinned_pool.h: where does host memory that streams can reach come from, and who gets it next?
//
// From slabs that live as long as the Gpu: giving memory back to CUDA (cudaFreeHost) waits for all
// that the device does. So do slabs for registration with communicators (ncclMemAlloc). Blocks have
// sizes of powers of two. What was given back last is taken first: pinned memory is host-ordered,
// so that a block may be used again at once, and a use after its end is likely to be seen.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "conformance/fabric/nccl/gpu.h"

namespace shardproof {

class PinnedPool {
 public:
  // gpu outlives the pool. Fabrics that use a Gpu one after the other share its pool.
  explicit PinnedPool(Gpu& gpu, uint64_t slab_bytes = uint64_t{4} << 20)
      : gpu_(gpu), slab_bytes_(slab_bytes) {}
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;

  // At least bytes, aligned to 256. Throws GpuError.
  std::byte* Take(uint64_t bytes);
  void Give(std::byte* data);  // REQUIRES: taken, and not given back

  // A slab of exactly these bytes that may be registered; one that was given back if there is one.
  GpuMemory TakeRegistrable(uint64_t bytes);
  void GiveRegistrable(const GpuMemory& slab, uint64_t bytes) {
    registrable_[bytes].push_back(slab);
  }

  uint64_t slab_bytes() const { return total_; }  // of all slabs of pinned memory

 private:
  Gpu& gpu_;
  uint64_t slab_bytes_;
  uint64_t total_ = 0;
  std::byte* next_ = nullptr;  // rest of the latest slab
  uint64_t rest_ = 0;
  std::map<uint64_t, std::vector<std::byte*>> spare_;  // by size
  std::map<std::byte*, uint64_t> taken_;               // sizes
  std::map<uint64_t, std::vector<GpuMemory>> registrable_;
};

}  // namespace shardproof
