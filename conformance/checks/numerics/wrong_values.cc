#include "conformance/checks/numerics/wrong_values.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "conformance/common/at.h"

namespace shardproof {

double CastTo(float value, int32_t dtype) {
  return dtype == SPF_BF16 ? FromBf16(ToBf16(value)) : value;
}

std::optional<double> CommonFactor(const Assembled& seen, const std::vector<float>& expected) {
  std::optional<double> factor;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (seen.from[i] == Assembled::kNobody) continue;
    if (expected[i] == 0) {
      if (seen.values[i] != 0) return std::nullopt;
      continue;
    }
    const double ratio = seen.values[i] / double{expected[i]};
    if (!std::isfinite(ratio)) return std::nullopt;
    if (factor && std::abs(*factor - ratio) > 1e-6 * std::abs(ratio)) return std::nullopt;
    if (!factor) factor = ratio;
  }
  return factor;
}

std::string NotNumbers(const Assembled& seen, const std::vector<float>& expected) {
  int64_t published = 0, nan = 0;
  for (size_t i = 0; i < expected.size() && i < seen.values.size(); ++i) {
    if (seen.from[i] == Assembled::kNobody) continue;
    ++published;
    if (std::isnan(seen.values[i]) && !std::isnan(expected[i])) ++nan;
  }
  if (nan == 0) return "";
  const std::string where =
      nan == published ? "all of it is NaN" : std::to_string(nan) + " are NaN";
  return where +
         ", as memory is that was never written, or was freed or discarded, and all that is "
         "computed from it";
}

std::string FactorText(double factor) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", factor);
  return text;
}

std::string Relation(double seen, double expected) {
  if (std::isnan(seen)) return std::isnan(expected) ? "" : "it is NaN: a summand was no number";
  if (std::isinf(seen)) return std::isinf(expected) ? "" : "it is infinite";
  if (expected == 0 || !std::isfinite(expected)) return "";
  return "it is " + FactorText(seen / expected) + " times what is expected";
}

}  // namespace shardproof
