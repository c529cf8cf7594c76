#include "conformance/fabric/nccl/cuda_queue.h"

#include <stdexcept>
#include <utility>

#include "conformance/fabric/nccl/cuda_status.h"

namespace shardproof {

CudaQueue::CudaQueue(std::string name, int priority, CudaShared& shared)
    : name_(std::move(name)), shared_(shared) {
  // Priorities out of range are clamped by CUDA.
  CheckCuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority),
            "cudaStreamCreateWithPriority", name_);
}

CudaQueue::~CudaQueue() {
  if (workspace_ != nullptr) cudaFreeAsync(workspace_, stream_);
  cudaStreamDestroy(stream_);
}

void CudaQueue::Run(std::function<void()>) {
  throw std::logic_error("Queue::Run on stream " + name_ +
                         ", which is CUDA's: launch a kernel instead");
}

void CudaQueue::CheckLaunch(const char* kernel) {
  CheckCuda(return_status_, "cudaFreeAsync", name_);
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  throw GpuError("launch of kernel \"" + std::string(kernel) + "\" on " + name_, ToText(status));
}

std::byte* CudaQueue::Take(uint64_t bytes) {
  CheckCuda(return_status_, "cudaFreeAsync", name_);
  void* memory = nullptr;
  const cudaError_t status = cudaMallocFromPoolAsync(&memory, bytes, shared_.pool, stream_);
  if (status != cudaSuccess)
    CheckCuda(status, "cudaMallocFromPoolAsync of " + std::to_string(bytes) + " bytes", name_);
  return static_cast<std::byte*>(memory);
}

void CudaQueue::Return(std::byte* memory) {
  const cudaError_t status = cudaFreeAsync(memory, stream_);
  if (return_status_ == cudaSuccess) return_status_ = status;
}

void CudaQueue::Fill(std::byte* to, int byte, uint64_t bytes) {
  if (bytes > 0) CheckCuda(cudaMemsetAsync(to, byte, bytes, stream_), "cudaMemsetAsync", name_);
}

void CudaQueue::Copy(std::byte* to, const std::byte* from, uint64_t bytes) {
  // Default: either may be pinned memory, which has one address on the host and on the device.
  if (bytes > 0)
    CheckCuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync",
              name_);
}

void CudaQueue::Upload(std::byte* to, const void* from, uint64_t bytes) {
  shared_.staging.Upload(stream_, to, from, bytes);
}

void CudaQueue::Download(void* to, const std::byte* from, uint64_t bytes) {
  shared_.staging.Download(stream_, to, from, bytes);
}

void CudaQueue::Multiply(const Gemm& gemm) {
  if (workspace_ == nullptr) workspace_ = Take(CudaGemm::kWorkspaceBytes);
  shared_.gemm.Multiply(*this, workspace_, gemm);
}

}  // namespace shardproof
