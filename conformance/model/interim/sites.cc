#include "conformance/model/interim/sites.h"

namespace shardproof {

int32_t FitExponent(double sum_of_squares, int64_t n, double factor, double limit) {
  // 2^e limit >= factor sqrt(ss / n)  <=>  4^e limit^2 n >= factor^2 ss: no root, no logarithm
  const double want = factor * factor * sum_of_squares;
  double have = limit * limit * static_cast<double>(n);
  if (!(want > 0)) return -10;
  int32_t e = 0;
  while (have < want) {
    have *= 4;
    ++e;
  }
  while (have * 0.25 >= want && e > -24) {
    have *= 0.25;
    --e;
  }
  return e;
}

}  // namespace shardproof
