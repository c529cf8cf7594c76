// spread.h: what is reported of a figure that was measured several times?
#pragma once
#include <algorithm>
#include <vector>

namespace shardproof {

struct Spread {
  double median = 0, least = 0, most = 0;
};

// REQUIRES: not empty.
inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// Of one figure of each round. REQUIRES: not empty.
inline Spread SpreadOf(const std::vector<double>& of_rounds) {
  const auto [least, most] = std::minmax_element(of_rounds.begin(), of_rounds.end());
  return {Median(of_rounds), *least, *most};
}

}  // namespace shardproof
