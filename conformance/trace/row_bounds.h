// row_bounds.h: do an event's indices and slices lie in its trace's tables? Internal to the
// writers: an engine can overwrite a trace where it is recorded.
#pragma once
#include <cstddef>

#include "conformance/trace/event.h"

namespace shardproof {

// Throws std::invalid_argument that names rank and event.
void CheckBounds(const Trace& trace, size_t index);

}  // namespace shardproof
