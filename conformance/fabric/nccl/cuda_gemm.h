// cuda_gemm.h: how is a row-major product put into a stream with cuBLAS?
#pragma once
#include <cublas_v2.h>

#include <cstddef>
#include <cstdint>

#include "conformance/cuda/queue.h"
#include "conformance/fabric/nccl/cuda_gpu.h"

namespace shardproof {

// One handle of cuBLAS for all streams of a Gpu. One thread calls.
class CudaGemm {
 public:
  // What cuBLAS recommends for Hopper (cublasSetWorkspace). Each stream brings its own: streams
  // that share one would wait for each other, or overwrite it.
  static constexpr uint64_t kWorkspaceBytes = uint64_t{32} << 20;

  explicit CudaGemm(GemmMode mode);
  ~CudaGemm();  // waits for the device
  CudaGemm(const CudaGemm&) = delete;
  CudaGemm& operator=(const CudaGemm&) = delete;

  // Enqueues. REQUIRES: queue is a CUDA stream; workspace has kWorkspaceBytes, aligned to 256, for
  // this stream alone. Throws std::invalid_argument for products that overlap in C.
  void Multiply(Queue& queue, std::byte* workspace, const Gemm& gemm);

 private:
  void MultiplyFp32(const Gemm& gemm);
  void MultiplyBf16(Queue& queue, const Gemm& gemm);

  GemmMode mode_;
  cublasHandle_t handle_ = nullptr;
};

}  // namespace shardproof
