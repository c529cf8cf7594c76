// muon.h: what does Muon make of a matrix, with the very kernels that a host launches?
//
// abi/KNOBS.md's rule, one unsharded matrix after the other. Sums are not exact here, so shapes and
// the side that is contracted are part of the rule: with them, an engine has the same bits.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/abi/shardproof.h"

namespace shardproof {

struct MuonRule {
  double lr = 0, weight_decay = 0;
  double momentum = 0.95;
  bool nesterov = false;
  std::string coefficients = "quintic";
  int32_t ns_steps = 5;
  std::string scale_mode = "spectral";
  double extra_scale = 1;
  bool split_qkv = true;
  bool bf16 = false;  // precision = medium
  double eps = 0.0078125;
};

// How one parameter is stepped.
struct MuonShape {
  int64_t cols = 0;  // 0: not by Muon
  int64_t rows = 0;
  bool fused_qkv = false;  // Q, K and V are a third of the rows each
};
MuonShape MuonShapeOf(const spf_model& tables, int32_t param);

// The orthogonalised rows x cols matrix.
std::vector<float> NewtonSchulz(const MuonRule& rule, int64_t rows, int64_t cols,
                                const std::vector<float>& u);

// Steps weight and momentum; grad is before clipping, scale the clip scale.
void UpdateMuon(const MuonRule& rule, double scale, const MuonShape& shape,
                const std::vector<float>& grad, std::vector<float>& momentum,
                std::vector<float>& weight);

}  // namespace shardproof
