#include "conformance/model/probe.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace shardproof {

namespace {
constexpr double kExact = 16777216.0;  // 2^24
constexpr double kExactNarrow = 256.0;
}  // namespace

void Probe::CheckOnGrid(const char* sum, const float* x, int64_t n, Grid grid) const {
  for (int64_t i = 0; i < n; ++i) {
    const double k = std::ldexp(static_cast<double>(x[i]), -grid.e);
    if (std::nearbyint(k) == k && std::fabs(k) <= grid.q) continue;
    throw std::logic_error(std::string(sum) + ": operand " + std::to_string(x[i]) + " is " +
                           std::to_string(k) + " quanta of 2^" + std::to_string(grid.e) +
                           ", not an integer up to " + std::to_string(grid.q));
  }
}

void Probe::CheckTotal(const char* sum, double quanta) {
  largest = std::max(largest, quanta);
  if (quanta < kExact) return;
  throw std::logic_error(std::string(sum) + ": magnitudes sum to " + std::to_string(quanta) +
                         " quanta; exact only below 2^24");
}

void Probe::AddToParam(const std::string& name, const std::vector<double>& magnitudes,
                       int32_t quantum_e, bool narrow) {
  Total& total = params_[name];
  if (total.magnitudes.empty()) {
    total = {quantum_e, std::vector<double>(magnitudes.size())};
  }
  const int32_t finest = std::min(total.quantum_e, quantum_e);
  const double old_unit = std::ldexp(1.0, total.quantum_e - finest),
               new_unit = std::ldexp(1.0, quantum_e - finest);
  total.quantum_e = finest;
  for (size_t i = 0; i < magnitudes.size(); ++i) {
    double& sum = total.magnitudes[i];
    sum = sum * old_unit + magnitudes[i] * new_unit;
    largest = std::max(largest, sum);
    if (sum < kExact && (!narrow || sum <= kExactNarrow)) continue;
    throw std::logic_error("gradient of " + name + "[" + std::to_string(i) +
                           "]: magnitudes of the step sum to " + std::to_string(sum) +
                           " quanta of 2^" + std::to_string(finest) + "; exact only up to " +
                           (narrow ? "2^8 (bf16)" : "2^24"));
  }
}

}  // namespace shardproof
