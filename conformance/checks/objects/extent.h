// extent.h: how many bytes must an operation read and write on this rank?
#pragma once
#include <cstdint>
#include <optional>

#include "conformance/trace/event.h"

namespace shardproof {

// Bytes; beyond 2^63 - 1 they stay there.
struct Extent {
  int64_t read = 0, write = 0;
};

// As shardproof.h says for collectives (FORMAT.md for those that it does not know), init and
// publish. Nothing: the row does not tell, say for compute.
std::optional<Extent> ExtentOf(const Trace& trace, const Event& event);

}  // namespace shardproof
