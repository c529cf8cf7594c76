// launch_kernels.h: what do the named kernels of spf_launch compute on a CPU?
//
// FILL, AXPBY, SUM_SQUARES, COUNT_NONFINITE, COUNT_ZERO, NORM_SCALE, ADAMW and GEMM, operation by
// operation as abi/shardproof.h says. DISCARD and CUSTOM are the host's. Thread-safe: no state.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shardproof {

struct SpanData {
  std::byte* data = nullptr;  // not looked at by ValidateLaunch
  uint64_t count = 0;         // elements
  int32_t dtype = 0;          // spf_dtype
  int32_t access = 0;         // spf_access
};

// "", or why the arguments do not fit the kernel: number of spans or scalars, dtypes, counts,
// accesses, values.
std::string ValidateLaunch(int32_t kernel, const std::vector<SpanData>& spans,
                           const std::vector<double>& scalars);

// REQUIRES: ValidateLaunch(...) == "", and data of every span points to count elements.
void RunLaunch(int32_t kernel, const std::vector<SpanData>& spans,
               const std::vector<double>& scalars);

}  // namespace shardproof
