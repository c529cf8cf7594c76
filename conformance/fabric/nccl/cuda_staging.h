// cuda_staging.h: how do bytes pass between pageable memory of the host and a stream, without making the host wait?
//
// cudaMemcpyAsync on pageable memory may wait for the stream (CUDA Runtime API, "API synchronization behavior"), which may
// be waiting for a collective that waits for this host. So bytes pass through a ring of pinned memory.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace shardproof {

// One thread calls. All calls enqueue. They wait only if more than the ring holds is under way: then, by polling, for the
// oldest transfer.
class CudaStaging {
 public:
  explicit CudaStaging(uint64_t bytes);
  ~CudaStaging();  // REQUIRES: all streams that it served are done
  CudaStaging(const CudaStaging&) = delete;
  CudaStaging& operator=(const CudaStaging&) = delete;

  // from, on the host, is read before the return.
  void Upload(cudaStream_t stream, std::byte* to, const void* from, uint64_t bytes);
  // to, on the host, is written in the stream's order.
  void Download(cudaStream_t stream, void* to, const std::byte* from, uint64_t bytes);

 private:
  // What the host does with bytes that have arrived.
  struct Delivery {
    void* to = nullptr;
    const std::byte* from = nullptr;
    uint64_t bytes = 0;
  };
  // A piece of the ring that is in use until the event is done.
  struct Transfer {
    uint64_t end = 0;  // of all bytes that were ever handed out
    cudaEvent_t done = nullptr;
    std::unique_ptr<Delivery> delivery;
  };

  static void CUDART_CB Deliver(void* delivery);
  // Answers a piece of the ring, for one transfer; Finish ends its use in the stream's order.
  std::byte* Reserve(uint64_t bytes);
  void Finish(cudaStream_t stream, std::unique_ptr<Delivery> delivery);
  bool Retire();  // the oldest transfer; false: it is under way

  std::byte* ring_ = nullptr;
  uint64_t bytes_;
  uint64_t handed_out_ = 0, free_up_to_ = 0;  // counted through: position modulo bytes_
  std::deque<Transfer> under_way_;
  std::vector<cudaEvent_t> spare_;
};

}  // namespace shardproof
