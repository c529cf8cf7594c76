// softmax.h: how is the softmax of rows computed on a device? For losses and attention.
#pragma once
#include "conformance/model/cuda/common.h"

namespace shardproof::device {

// tops[row]: the largest logit of the row [columns]; sums[row]: the sum of NumeratorOf its logits.
void SumNumerators(Queue& queue, const Rules& rules, int64_t rows, int64_t columns,
                   const float* logits, float* tops, float* sums);

constexpr float NumeratorOf(const Rules& rules, Grid numerator, float logit, float top) {
  return rules.Rounded(numerator, Exp(logit - top));
}

}  // namespace shardproof::device
