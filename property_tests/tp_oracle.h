// tp_oracle.h: what should tensor-parallel ranks hold after steps of Muon, by the oracle of whole
// matrices?
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/oracle/muon.h"
#include "property_tests/tp_machine.h"

namespace shardproof {

std::map<std::string, std::string> KnobsOf(const MuonRule& rule, const std::string& mode);

// The matrix that shards make in rank order.
std::vector<float> WholeOf(const std::vector<std::vector<float>>& shards, int64_t rows,
                           int64_t cols, int32_t dim);

struct Stepped {
  std::vector<float> weight, momentum;  // whole
};
// The matrix stepped as one. ranks: of those that hold it; where rows of Q, K and V are split, each
// rank has a third of its rows for each of them.
Stepped StepWhole(const MuonRule& rule, const TpMatrix& matrix, int32_t ranks);
// Each rank's shard stepped as if it were the matrix.
Stepped StepBlocks(const MuonRule& rule, const TpMatrix& matrix, int32_t ranks);

// A random matrix whose singular values are between least and 1, with both present.
std::vector<float> Conditioned(int64_t rows, int64_t cols, double least, uint64_t seed);

// || a - b || / || b ||, Frobenius.
double Distance(const std::vector<float>& a, const std::vector<float>& b);

// The largest singular value of orthogonalised - polar factor of u.
double DistanceFromPolar(const std::vector<float>& orthogonalised, const std::vector<float>& u,
                         int64_t rows, int64_t cols);

// What all ranks hold of matrix i, put together. Replicas are those of the first ranks.
struct Held {
  Stepped whole;
  std::string contradiction;  // where replicas differ
};
Held HeldOf(const TpRequest& request, const TpAnswer& answer, size_t i);

}  // namespace shardproof
