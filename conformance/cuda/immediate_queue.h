// immediate_queue.h: how do kernels run without a GPU? At once, on host memory.
//
// For bodies that a CPU fabric already runs in stream order, and for tests of kernels.
#pragma once
#include "conformance/cuda/queue.h"

namespace shardproof {

// C by plain loops over k, in fp32. For queues without a GPU.
void MultiplyOnHost(const Gemm& gemm);

class ImmediateQueue : public Queue {
 public:
  void* native() const override { return nullptr; }
  void Run(std::function<void()> body) override { body(); }
  void CheckLaunch(const char*) override {}
  std::byte* Take(uint64_t bytes) override;
  void Return(std::byte* memory) override;
  void Fill(std::byte* to, int byte, uint64_t bytes) override;
  void Copy(std::byte* to, const std::byte* from, uint64_t bytes) override;
  void Upload(std::byte* to, const void* from, uint64_t bytes) override;
  void Download(void* to, const std::byte* from, uint64_t bytes) override;
  void Multiply(const Gemm& gemm) override { MultiplyOnHost(gemm); }
};

}  // namespace shardproof
