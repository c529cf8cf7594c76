// cuda_testing.h: what do tests on a real device need? A Gpu with streams, and bytes to it and
// back.
//
// Without a device each test is skipped, with CUDA's words for why.
#pragma once
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
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

// Equal as bytes, or pairs of NaN: a device's NaN has other bits than a host's. width: bytes of an
// element, 4 or 2 (bf16).
inline std::string Difference(const std::vector<std::byte>& found,
                              const std::vector<std::byte>& wanted, size_t width) {
  for (size_t i = 0; i + width <= wanted.size(); i += width) {
    if (std::memcmp(found.data() + i, wanted.data() + i, width) == 0) continue;
    uint32_t a = 0, b = 0;
    std::memcpy(&a, found.data() + i, width);
    std::memcpy(&b, wanted.data() + i, width);
    const uint32_t infinity = width == 4 ? 0x7f800000u : 0x7f80u,
                   sign = width == 4 ? 0x7fffffffu : 0x7fffu;
    if ((a & sign) > infinity && (b & sign) > infinity) continue;
    return "element " + std::to_string(i / width) + " has the bits " + std::to_string(a) +
           " instead of " + std::to_string(b);
  }
  return "";
}

}  // namespace shardproof
