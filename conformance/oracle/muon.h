// muon.h: what does Muon make of a matrix?
//
// abi/KNOBS.md's rule, one whole matrix after the other: shards that tensor-parallel ranks hold are
// cut out of it where the rule asks what each rank makes of its own.
#pragma once
#include <cstdint>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/oracle/newton_schulz.h"

namespace shardproof {

// How one parameter is stepped.
struct MuonShape {
  int64_t cols = 0;  // 0: not by Muon
  int64_t rows = 0;
  // Not 0: rows of Q, K and V. They are so many groups of rows, each a third Q, K and V.
  int64_t qkv_groups = 0;
  int32_t tp_dim = -1;  // split over MuonRule::tp ranks: 0 its rows, 1 its columns
};
// qkv_groups: of a fused projection.
MuonShape MuonShapeOf(const spf_model& tables, int32_t param, int64_t qkv_groups = 1);

// Steps weight and momentum; grad is before clipping, scale the clip scale. Throws
// std::invalid_argument where ranks or groups do not divide the matrix.
void UpdateMuon(const MuonRule& rule, double scale, const MuonShape& shape,
                const std::vector<float>& grad, std::vector<float>& momentum,
                std::vector<float>& weight);

}  // namespace shardproof
