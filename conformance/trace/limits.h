// limits.h: which numbers may an event hold? Internal to the readers.
#pragma once
#include <cstdint>
#include <limits>

namespace shardproof {

// Bytes and elements: no rank has more, and sums and products of a few of them still fit.
constexpr int64_t kMaxSize = int64_t{1} << 40;
constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kMinInt64 = std::numeric_limits<int64_t>::min(),
                  kMaxInt64 = std::numeric_limits<int64_t>::max();
constexpr int64_t kMaxWorld = 1 << 20;

}  // namespace shardproof
