// collective_math.h: what does a collective compute, given everybody's bytes?
#pragma once
#include <cstddef>
#include <cstdint>

#include "conformance/common/dtype.h"

namespace shardproof {

// Conversions of the 16-bit formats; to is round to nearest even, NaN stays NaN (quiet).
namespace wire {
float FromBf16(uint16_t bits);
uint16_t ToBf16(float value);
float FromF16(uint16_t bits);
uint16_t ToF16(float value);
}  // namespace wire

// into[i] = into[i] + from[i], one rounding each, in dtype (bf16 and f16 round to nearest even
// after every addition; integers wrap).
void AddInto(std::byte* into, const std::byte* from, uint64_t count, int32_t dtype);

// data[i] = data[i] * fl(1/n) as NCCL's average does for floating dtypes, applied to each
// contribution before the sum. fl(1/n) is rounded to dtype. Integers are left alone: FinishAverage
// divides their sum.
void ScaleForAverage(std::byte* data, uint64_t count, int32_t dtype, int32_t n);

// Of an integer sum: data[i] = data[i] / n, truncating. Floating dtypes are left alone.
void FinishAverage(std::byte* data, uint64_t count, int32_t dtype, int32_t n);

}  // namespace shardproof
