// tensor_parallel.h: how is a matrix orthogonalised when each rank of a group holds some of its
// rows, or some of its columns?
//
//   duplicated   shards are gathered and put together along the split dimension, in rank order;
//                every rank orthogonalises the whole matrix and keeps its own part of the result
//   distributed  every rank works on its shard; the split side is contracted, so that what ranks
//                have to add up is small: the squared norm, and the Gram matrix of each step
//   blockwise    every rank takes its shard for a whole matrix: nothing is sent, and the result
//                depends on the number of ranks
// Shards are equal. A matrix that is not split is nobody else's business: every rank has all of it,
// does the same with it, and sends nothing. Everything here is a pure function; shard_step.h
// launches it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "reference/muon/muon.h"
#include "reference/muon/newton_schulz.h"

namespace reference {

// Which shard this rank holds.
struct TpSplit {
  int32_t dim = -1;  // 0: some of the rows, 1: some of the columns, -1: everything
  int32_t ranks = 1, rank = 0;

  bool splits() const { return dim >= 0 && ranks > 1; }
};

// ------------------------------------------------------------------ launches and collectives

struct ShardPlan {
  // The shards are gathered first, and newton_schulz is of the whole matrix. Else it is of the
  // shard, and what is partial in it is all-reduced.
  bool gather = false;
  NewtonSchulzPlan newton_schulz;
  // What the scale is worked out from: the whole matrix, but for blockwise.
  int64_t scale_rows = 0, scale_cols = 0;
};

// rows, cols: of the shard. REQUIRES: split.splits().
ShardPlan PlanShard(MuonTpMode mode, const TpSplit& split, int64_t rows, int64_t cols,
                    const std::vector<NewtonSchulzStep>& steps, double eps, spf_dtype dtype);

// ------------------------------------------------------------------ fused projections

// Rows of this rank that form one matrix each, where the whole projection has so many groups of
// rows, each with rows_of_parts (SplitFused). A rank holds whole groups: throws
// std::invalid_argument with the parameter's name where the split cuts one, because a part of Q, K
// and V together is none of them (NVIDIA/Megatron-LM#6326).
std::vector<MatrixPiece> PiecesOfShard(const std::string& name, int64_t rows, int64_t groups,
                                       const std::vector<int64_t>& rows_of_parts,
                                       const TpSplit& split);

// What of a parameter of the tables is orthogonalised together: Q, K and V, a third of the rows of
// each head, for the weight of a module named "...attention.qkv" with split_qkv; else everything.
// Without a number of heads, what each rank holds is one group.
std::vector<MatrixPiece> PiecesOf(const spf_model& model, int32_t param, const MuonOptions& options,
                                  const TpSplit& split = {});

// ------------------------------------------------------------------ where elements go

// Elements [from, from + count) of one array are elements [to, to + count) of another.
struct BlockMove {
  int64_t from = 0, to = 0, count = 0;
  bool operator==(const BlockMove&) const = default;
};

// From shards of rows x cols that lie one after the other, in rank order, to the whole matrix.
// Shards of rows lie as they should: no moves.
std::vector<BlockMove> PutTogether(const TpSplit& split, int64_t rows, int64_t cols);

// From the whole matrix of a piece to this rank's rows of it, as they lie in the parameter (cols
// columns).
std::vector<BlockMove> OwnPart(const TpSplit& split, const MatrixPiece& piece, int64_t cols);

}  // namespace reference
