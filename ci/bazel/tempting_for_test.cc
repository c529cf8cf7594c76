// A kernel that nvcc, left to its defaults, would compile to a fused multiply-add, and to
// approximations with fast math.
#include <cmath>

#include "conformance/cuda/for_each.h"

namespace shardproof {

void Tempting(Queue& queue, const float* x, float* y, int64_t n) {
  ForEach(queue, "tempting", n, [=] SHARDPROOF_KERNEL(int64_t i) {
    y[i] = std::sqrt(x[i] * x[i] + y[i]) / (x[i] - y[i]);
  });
}

}  // namespace shardproof
