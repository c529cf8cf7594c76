#include "conformance/checks/numerics/update_bound.h"

#include <algorithm>
#include <cmath>

namespace shardproof {

double UpdateBound(double before, double after, double lr, int updates) {
  constexpr double kUnit = 0x1p-23;
  return kUnit * (8 * std::max(std::fabs(before), std::fabs(after)) + (6 * updates + 10) * lr);
}

}  // namespace shardproof
