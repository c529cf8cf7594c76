// at_rest.h: how much device memory may a rank keep between steps?
#pragma once
#include <cstdint>

#include "conformance/checks/base/analysis.h"

namespace shardproof {

// Bytes: what the strategy says, and padding and scratch beside it.
struct Allowed {
  int64_t formula = 0, padding = 0;
};

Allowed AllowedAtRest(const Analysis& a, int32_t rank, int32_t instance);

}  // namespace shardproof
