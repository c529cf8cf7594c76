// cuda_queue.h: what is a CUDA stream as kernels see it?
#pragma once
#include <cuda_runtime_api.h>

#include <string>

#include "conformance/cuda/queue.h"
#include "conformance/fabric/nccl/cuda_gemm.h"
#include "conformance/fabric/nccl/cuda_staging.h"

namespace shardproof {

// What the streams of a Gpu share.
struct CudaShared {
  cudaMemPool_t pool = nullptr;
  CudaStaging& staging;
  CudaGemm& gemm;
};

class CudaQueue : public Queue {
 public:
  // name: for messages. Makes the stream; lower priorities are more urgent.
  CudaQueue(std::string name, int priority, CudaShared& shared);
  // Gives back its workspace and destroys the stream, without waiting: what is enqueued still runs.
  ~CudaQueue() override;
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  cudaStream_t stream() const { return stream_; }
  const std::string& name() const { return name_; }

  void* native() const override { return stream_; }
  std::byte* Take(uint64_t bytes) override;
  void Return(std::byte* memory) override;
  void Run(std::function<void()> body) override;  // std::logic_error
  void CheckLaunch(const char* kernel) override;
  void Multiply(const Gemm& gemm) override;
  void Fill(std::byte* to, int byte, uint64_t bytes) override;
  void Copy(std::byte* to, const std::byte* from, uint64_t bytes) override;
  void Upload(std::byte* to, const void* from, uint64_t bytes) override;
  void Download(void* to, const std::byte* from, uint64_t bytes) override;

 private:
  std::string name_;
  CudaShared& shared_;
  cudaStream_t stream_ = nullptr;
  std::byte* workspace_ = nullptr;  // of cuBLAS, from the first product on
  cudaError_t return_status_ =
      cudaSuccess;  // of a Return that failed: scopes end with it, so the next call throws
};

}  // namespace shardproof
