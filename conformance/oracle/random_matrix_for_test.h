// random_matrix_for_test.h: which rows x cols matrix, of normally distributed elements, does a seed
// draw?
#pragma once
#include <cstdint>
#include <random>
#include <vector>

namespace shardproof {

inline std::vector<float> Random(int64_t rows, int64_t cols, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> u(static_cast<size_t>(rows * cols));
  for (float& value : u) value = normal(random);
  return u;
}

}  // namespace shardproof
