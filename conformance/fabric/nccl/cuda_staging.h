// cuda_staging.h: how do bytes pass between pageable memory of the host and a stream, without
// making the host wait?
//
// cudaMemcpyAsync on pageable memory may wait for the stream (CUDA Runtime API, "API
// synchronization behavior"), which may be waiting for a collective that waits for this host. So
// bytes pass through a ring of pinned memory. The last step to the host is taken when the host
// asks, not by cudaLaunchHostFunc, which stops the stream for its call.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "conformance/fabric/nccl/gpu.h"

namespace shardproof {

// One thread calls. All calls enqueue. They wait only if more than the ring holds is under way:
// then, by polling, for the oldest transfer, until what SetBeginWait was given says to give up;
// then they throw GpuError.
class CudaStaging {
 public:
  explicit CudaStaging(uint64_t bytes);
  ~CudaStaging();  // REQUIRES: all streams that it served are done
  CudaStaging(const CudaStaging&) = delete;
  CudaStaging& operator=(const CudaStaging&) = delete;

  // from, on the host, is read before the return.
  void Upload(cudaStream_t stream, std::byte* to, const void* from, uint64_t bytes);
  // to, on the host, is written by the first Deliver after the stream has come there, or earlier by
  // another call.
  void Download(cudaStream_t stream, void* to, const std::byte* from, uint64_t bytes);
  // Writes what has arrived. Call when the host has learned that a stream has come somewhere.
  void Deliver();
  void SetBeginWait(Gpu::BeginWait begin) { begin_wait_ = std::move(begin); }

 private:
  // A piece of the ring that is in use until the event is done.
  struct Transfer {
    uint64_t end = 0;  // of all bytes that were ever handed out
    cudaEvent_t done = nullptr;
    void* to = nullptr;  // where on the host its bytes go, then null; null for uploads
    const std::byte* from = nullptr;
    uint64_t bytes = 0;
  };

  // Answers a piece of the ring, for one transfer; Finish ends its use in the stream's order.
  std::byte* Reserve(uint64_t bytes);
  void Finish(cudaStream_t stream, Transfer transfer);
  static bool TryDeliver(Transfer& transfer);  // false: it is under way
  bool Retire();                               // the oldest transfer; false: it is under way

  std::byte* ring_ = nullptr;
  uint64_t bytes_;
  uint64_t handed_out_ = 0, free_up_to_ = 0;  // counted through: position modulo bytes_
  std::deque<Transfer> under_way_;
  std::vector<cudaEvent_t> spare_;
  Gpu::BeginWait begin_wait_;
};

}  // namespace shardproof
