// cuda_round.h: how does a matrix become bf16 on the device?
#pragma once
#include <cstdint>

#include "conformance/cuda/queue.h"

namespace shardproof {

// to [batch][rows][columns], dense = from, whose rows are `stride` elements apart and whose
// matrices `step`. Round to nearest even; NaN stays NaN.
void RoundToBf16(Queue& queue, const float* from, int64_t rows, int64_t columns, int64_t stride,
                 int64_t batch, int64_t step, uint16_t* to);

}  // namespace shardproof
