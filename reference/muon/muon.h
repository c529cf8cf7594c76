// muon.h: how does Muon change a matrix?
//
// With x the clipped gradient and beta the momentum, on the whole matrix W (M rows, N columns):
//   m = (1-beta) x + beta m                       an average: the first step takes (1-beta) x
//   u = nesterov ? (1-beta) x + beta m : m
//   o = newton_schulz(u)                          each of Q, K and V by itself, with its own shape
//   W = -(lr extra scale) o + (1 - lr wd) W       decoupled decay
// Only the direction of u counts, up to eps; so clipping shows in the mix of gradients in m, and
// hardly elsewhere.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "reference/muon/newton_schulz.h"

namespace reference {

enum class MuonScale { kSpectral, kUnitRmsNorm, kShapeScaling };
// A matrix that is split over tensor-parallel ranks (tensor_parallel.h).
enum class MuonTpMode { kDuplicated, kDistributed, kBlockwise };

struct MuonOptions {
  double momentum = 0.95;
  bool nesterov = false;
  Coefficients coefficients = Coefficients::kQuintic;
  int32_t steps = 5;
  MuonScale scale = MuonScale::kSpectral;
  double extra_scale = 1;
  bool split_qkv = true;
  int64_t heads = 0;            // over all ranks of tp: groups of rows of Q, K and V; 0: one group
  bool bf16_iteration = false;  // X, A and B are rounded to bf16 after each product
  double eps = 0.0078125;       // added to the norm; visible, so that a wrong scale is seen
  MuonTpMode tp_mode = MuonTpMode::kDuplicated;
};

// The factor of a matrix with so many rows and columns: of the whole parameter, or of the piece of
// it that is orthogonalised by itself.
double ScaleOf(MuonScale scale, int64_t rows, int64_t cols);

// Whether Muon steps this parameter: a trainable matrix inside a layer. Embeddings, the head, a
// matrix of the root, norms and biases are stepped by AdamW. The one rule for buckets and for
// updates (NVIDIA/Megatron-LM#6642).
bool SteppedByMuon(const spf_model& model, int32_t param);
// By parameter id.
std::vector<bool> SteppedByMuon(const spf_model& model);

// ------------------------------------------------------------------ pieces of a parameter

struct RowRange {
  int64_t begin = 0, count = 0;
  bool operator==(const RowRange&) const = default;
};
// Rows that form one matrix, in order.
using MatrixPiece = std::vector<RowRange>;

int64_t RowsOf(const MatrixPiece& piece);

// The rows of a fused projection are groups, each with so many rows for each of its parts (Q, K and
// V; or Q, gate, K and V): piece i is part i of all groups. Throws std::invalid_argument if the
// groups are not all of the rows: treated as one matrix it would be another update.
std::vector<MatrixPiece> SplitFused(int64_t rows, int64_t groups,
                                    const std::vector<int64_t>& rows_of_parts);

}  // namespace reference
