// digest.h: how are values summarised where they lie, on a GPU?
#pragma once
#include <cstddef>
#include <cstdint>

#include "conformance/cuda/queue.h"

namespace shardproof {

// Adds DigestValues (trace/digest.h) of count elements of dtype (spf_dtype) to *sum; the first has
// the given index. data and sum are device pointers, data aligned to dtype. Puts the work into the
// queue and returns; work of other queues may add to the same sum at the same time. An unknown
// dtype throws std::invalid_argument.
void DigestOnDevice(Queue& queue, const std::byte* data, int32_t dtype, int64_t first_index,
                    int64_t count, uint64_t* sum);

}  // namespace shardproof
