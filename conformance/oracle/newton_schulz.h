// newton_schulz.h: what does Newton-Schulz make of a matrix, with the very kernels that a host
// launches?
//
// abi/KNOBS.md's rule. Sums are not exact here, so shapes and the side that is contracted are part
// of it: with them, an engine has the same bits.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

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
  // Ranks that a matrix is split over, and what they do with their shards (muon_tp_mode).
  int32_t tp = 1;
  std::string tp_mode = "duplicated";
};

// The orthogonalised rows x cols matrix.
std::vector<float> NewtonSchulz(const MuonRule& rule, int64_t rows, int64_t cols,
                                const std::vector<float>& u);

// That of a matrix whose shards, rows x cols each, lie on ranks that add up what is partial: the
// squared norm and the Gram matrices. dim: 0 if they are its rows, 1 if its columns. The order of a
// sum over more than two ranks is that of the ranks.
std::vector<std::vector<float>> NewtonSchulzOfShards(const MuonRule& rule, int64_t rows,
                                                     int64_t cols, int32_t dim,
                                                     const std::vector<std::vector<float>>& shards);

}  // namespace shardproof
