// tp_requests.h: what do tests of Muon on tensor-parallel ranks ask for?
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "property_tests/tp_oracle.h"

namespace shardproof {

inline constexpr const char* kTpModes[] = {"duplicated", "distributed", "blockwise"};

inline MuonRule Rule() {
  MuonRule rule;
  rule.lr = 0.5;
  return rule;
}

inline TpMatrix MatrixOf(int64_t rows, int64_t cols, int32_t dim, size_t steps, uint64_t seed) {
  TpMatrix matrix;
  matrix.rows = rows, matrix.cols = cols, matrix.dim = dim;
  matrix.weight = Conditioned(rows, cols, 0.25, seed);
  for (uint64_t step = 1; step <= steps; ++step)
    matrix.grads.push_back(Conditioned(rows, cols, 0.25, seed + 1000 * step));
  return matrix;
}

inline TpMatrix Qkv(TpMatrix matrix) {
  matrix.fused_qkv = true;
  return matrix;
}

// Split and whole, wide and tall, the split side longer and shorter than the other, Q, K and V.
// Rows and columns are multiples of 24: 1, 2, 3, 4 and 8 ranks split them, also thirds of 72 rows.
inline TpRequest RequestOf(const MuonRule& rule, const std::string& mode, int32_t ranks,
                           size_t steps = 1, size_t matrices = 9) {
  TpRequest request;
  request.tp = ranks;
  request.expert_tp = ranks;
  request.knobs = KnobsOf(rule, mode);
  request.matrices = {MatrixOf(24, 48, 0, steps, 1),      MatrixOf(24, 48, 1, steps, 2),
                      MatrixOf(48, 24, -1, steps, 3),     MatrixOf(48, 24, 0, steps, 4),
                      MatrixOf(48, 24, 1, steps, 5),      Qkv(MatrixOf(72, 24, 0, steps, 6)),
                      Qkv(MatrixOf(72, 24, 1, steps, 7)), Qkv(MatrixOf(72, 24, -1, steps, 8)),
                      MatrixOf(24, 24, 0, steps, 9)};
  request.matrices.resize(matrices);
  return request;
}

inline TpAnswer StepAll(const TpRequest& request) {
  TpAnswer answer = StepOnTpRanks(request);
  EXPECT_EQ(answer.wrong, "");
  for (size_t i = 0; i < request.matrices.size(); ++i)
    EXPECT_EQ(HeldOf(request, answer, i).contradiction, "") << "replicas differ";
  return answer;
}

inline void ExpectSame(const Stepped& seen, const Stepped& expected, const std::string& what) {
  EXPECT_TRUE(seen.weight == expected.weight) << what << ": weight";
  EXPECT_TRUE(seen.momentum == expected.momentum) << what << ": momentum";
}

inline std::string What(const TpRequest& request, size_t i) {
  const TpMatrix& matrix = request.matrices[i];
  return std::to_string(matrix.rows) + " x " + std::to_string(matrix.cols) + ", dim " +
         std::to_string(matrix.dim) + ", " + request.knobs.at("muon_tp_mode") + " on " +
         std::to_string(request.tp);
}

inline bool IsSplit(const TpRequest& request, size_t i) {
  return request.matrices[i].dim >= 0 && request.tp > 1;
}

}  // namespace shardproof
