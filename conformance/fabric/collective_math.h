// collective_math.h: what does a collective compute, given everybody's bytes?
#pragma once
#include <cstddef>
#include <cstdint>

#include "conformance/abi/shardproof.h"

namespace shardproof {

uint64_t DtypeBytes(int32_t dtype);

// into[i] = into[i] + from[i], one rounding each, in dtype (bf16 and f16 round to nearest even after every addition).
void AddInto(std::byte* into, const std::byte* from, uint64_t count, int32_t dtype);

// into[i] = into[i] * fl(1/n) as NCCL's average does for floating dtypes, applied to each contribution before the sum.
void ScaleForAverage(std::byte* data, uint64_t count, int32_t dtype, int32_t n);

}  // namespace shardproof
