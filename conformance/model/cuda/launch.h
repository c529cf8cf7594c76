// launch.h: how do the named kernels of spf_launch run on a GPU?
#pragma once
#include <cstdint>
#include <vector>

#include "conformance/cuda/queue.h"
#include "conformance/model/launch_kernels.h"

namespace shardproof {

// RunLaunch on the device: puts the kernel into the queue and returns. Data of spans are device
// pointers. The same bits for all dtypes and accesses: both are made of launch_math.h. Products are
// not cuBLAS's: Newton-Schulz is not exact, so the order of its sums is part of the rule. REQUIRES:
// ValidateLaunch(...) == ""; spans that overlap are all read, or the very same range and of no
// product.
void RunLaunchOnDevice(Queue& queue, int32_t kernel, const std::vector<SpanData>& spans,
                       const std::vector<double>& scalars);

}  // namespace shardproof
