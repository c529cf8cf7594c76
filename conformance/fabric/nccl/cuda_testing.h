// cuda_testing.h: what do tests on a real device need? A Gpu with streams, and bytes to it and
// back.
//
// Without a device each test is skipped, with CUDA's words for why.
#pragma once
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/fabric/nccl/cuda_gpu.h"

namespace shardproof {

inline std::string ModeName(const testing::TestParamInfo<GemmMode>& info) {
  if (info.param == GemmMode::kFp32) return "Fp32";
  return info.param == GemmMode::kTf32 ? "Tf32" : "Bf16";
}

class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = WhyNoDevice(0);
    if (!why.empty()) GTEST_SKIP() << "no GPU: " << why;
    Open({});
  }

  void Open(const CudaGpuOptions& options) {
    gpu_ = nullptr;
    gpu_ = OpenCudaGpu(options);
    stream_ = gpu_->CreateStream("test", 0);
    end_ = gpu_->CreateEvent(false);
  }

  // Without a limit of its own: what hangs is ended from outside.
  void Finish(int32_t stream) {
    gpu_->Record(end_, stream);
    ASSERT_TRUE(gpu_->Await(end_, {}));
  }
  void Finish() { Finish(stream_); }
  // Some tens of milliseconds of work on any device: other streams get far ahead.
  void KeepBusy(int32_t stream) {
    constexpr uint64_t kBytes = uint64_t{1} << 28;
    const GpuMemory block = gpu_->Alloc(stream, kBytes);
    for (int i = 0; i < 400; ++i) gpu_->QueueOf(stream).Fill(block.data, i, kBytes);
    gpu_->Free(stream, block.data);
  }

  template <class T>
  T* ToDevice(const std::vector<T>& values) {
    std::byte* data = gpu_->Alloc(stream_, values.size() * sizeof(T)).data;
    gpu_->QueueOf(stream_).Upload(data, values.data(), values.size() * sizeof(T));
    return reinterpret_cast<T*>(data);
  }
  template <class T>
  std::vector<T> FromDevice(const T* data, size_t count) {
    std::vector<T> values(count);
    gpu_->QueueOf(stream_).Download(values.data(), reinterpret_cast<const std::byte*>(data),
                                    count * sizeof(T));
    Finish();
    return values;
  }

  std::unique_ptr<Gpu> gpu_;
  int32_t stream_ = -1, end_ = -1;
};

}  // namespace shardproof
