#include "conformance/model/cuda/softmax.h"

#include "conformance/model/cuda/reduce.h"

namespace shardproof::device {

void SumNumerators(Queue& queue, const Rules& rules, int64_t rows, int64_t columns,
                   const float* logits, float* tops, float* sums) {
  const Rules r = rules;
  const Grid numerator = grids::kNumerator;
  RowMaxima(
      queue, "softmax_tops", rows, columns,
      [=] SHARDPROOF_KERNEL(int64_t row, int64_t i) { return logits[row * columns + i]; }, tops);
  RowSums(
      queue, "softmax_sums", rows, columns,
      [=] SHARDPROOF_KERNEL(int64_t row, int64_t i) {
        return NumeratorOf(r, numerator, logits[row * columns + i], tops[row]);
      },
      sums);
}

}  // namespace shardproof::device
