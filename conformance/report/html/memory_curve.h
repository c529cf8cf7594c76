// memory_curve.h: how much device memory does a rank hold from event to event, and for what?
//
// For the findings that are about amounts: what stands beside their drawing (drawing.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof {

struct MemoryCurve {
  struct Purpose {
    std::string name;            // of spf_purpose, as in a trace: "param_full"
    std::vector<int64_t> bytes;  // in each column
  };
  int32_t rank = 0;
  int64_t events = 0;   // of the rank's trace; columns divide them evenly
  int64_t finding = 0;  // where it shows; -1: at no event
  int64_t peak = 0, peak_bytes = 0;
  std::vector<Purpose> purposes;  // those that hold some at some time, the most first
  // By purpose, in their order: after the finding's event (empty: there is none) and after the
  // peak's.
  std::vector<int64_t> at_finding, at_peak;
};

inline constexpr size_t kMemoryColumns = 120;

// Whether the requirement bounds how much device memory is held, or how long.
bool BoundsMemory(std::string_view requirement);

// Bytes in live blocks of device memory, all engines of the rank together; a block counts until it
// is freed, or given back to the engine's pool. A column shows the moment at which most is held in
// its events. No purposes: the trace tells of no memory. Sums stop at 2^62 bytes.
MemoryCurve MemoryOf(const Trace& trace, int64_t finding);

}  // namespace shardproof
