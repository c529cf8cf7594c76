#include "conformance/fabric/nccl/cuda_round.h"

#include <bit>

#include "conformance/cuda/for_each.h"

namespace shardproof {

void RoundToBf16(Queue& queue, const float* from, int64_t rows, int64_t columns, int64_t stride,
                 int64_t batch, int64_t step, uint16_t* to) {
  ForEach(queue, "round to bf16", batch * rows * columns, [=] SHARDPROOF_KERNEL(int64_t i) {
    const int64_t column = i % columns, row = i / columns % rows, matrix = i / columns / rows;
    const float value = from[matrix * step + row * stride + column];
    const auto bits = std::bit_cast<uint32_t>(value);
    // Adding half of what is cut off, and one less where the result would become odd, rounds to
    // nearest even.
    to[i] = value != value ? static_cast<uint16_t>((bits >> 16) | 0x40u)
                           : static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  });
}

}  // namespace shardproof
