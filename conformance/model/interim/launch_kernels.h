// launch_kernels.h: what do the named kernels of shardproof.h compute on the CPU?
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shardproof {

struct SpanData {
  std::byte* data = nullptr;
  uint64_t count = 0;
  int32_t dtype = 0;
  int32_t access = 0;
};

// "" or what is wrong with number, dtype, count or access of spans, or number of scalars.
std::string ValidateLaunch(int32_t kernel, const std::vector<SpanData>& spans, const std::vector<double>& scalars);
// REQUIRES: ValidateLaunch answers "".
void RunLaunch(int32_t kernel, const std::vector<SpanData>& spans, const std::vector<double>& scalars);

}  // namespace shardproof
