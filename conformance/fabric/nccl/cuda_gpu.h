// cuda_gpu.h: what is a Gpu on a real device? CUDA, NCCL and cuBLAS, one call for one call.
//
// Needs the CUDA toolkit to be built; this header does not.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "conformance/fabric/nccl/gpu.h"

namespace shardproof {

// What products are computed with; sums in fp32 in all three. Of operands with 8 significant bits,
// whose sums fp32 holds (model/NUMERICS.md), all give the same bits, provided that tensor cores
// keep 24 bits when they add.
enum class GemmMode : uint8_t {
  kFp32,  // fp32 units: CUBLAS_COMPUTE_32F_PEDANTIC
  kTf32,  // tensor cores, operands cut to 11 bits: CUBLAS_COMPUTE_32F_FAST_TF32
  kBf16,  // tensor cores, operands rounded to 8 bits first: CUDA_R_16BF in, fp32 out
};

struct CudaGpuOptions {
  int device = 0;
  GemmMode gemm = GemmMode::kFp32;
  // Pinned memory that copies between the device and pageable memory go through.
  uint64_t staging_bytes = uint64_t{64} << 20;
};

// Opens a device for the calling thread, which is the only one that may use the Gpu. Throws
// GpuError. Sets CUDA_MODULE_LOADING=EAGER if the environment does not say: a kernel that is loaded
// at its first launch may wait for all others on the device, a collective among them (CUDA
// Programming Guide, "Lazy Loading", potential hazards).
std::unique_ptr<Gpu> OpenCudaGpu(const CudaGpuOptions& options);

// Empty if the device can be used, else why not: "cudaErrorNoDevice (no CUDA-capable device is
// detected)".
std::string WhyNoDevice(int device);

}  // namespace shardproof
