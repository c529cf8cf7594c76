// hybrid.h: how is a data-parallel group split for HSDP?
//
// With n optimizer instances the ordered members of a group are cut into n contiguous chunks: the
// inner groups, over which parameters are sharded. An outer group has the members at the same
// position of every chunk. The dense and the expert groups are split separately, so neither relies
// on the other's strides.
#pragma once
#include "reference/groups/rank_grid.h"

namespace reference {

struct HybridSplit {
  RankLists inner, outer;
};

// Throws GridError when n does not divide a list. what names the lists in the message.
HybridSplit SplitHybrid(const RankLists& lists, int32_t n, const std::string& what);

// Each list in runs of n ranks: who shares out the parameters between a unit's forward and its
// backward (reshard_after_forward). Throws GridError when n does not divide a list, or is not less.
RankLists SplitForBackward(const RankLists& lists, int32_t n, const std::string& what);

// Where both inner and outer ranks shard (outer_strategy optim), the owner of logical shard inner *
// outer_size + outer: the inner shard is cut into outer_size slices, and the outer rank owns its
// slice of it.
inline int32_t LogicalShard(int32_t inner_rank, int32_t outer_rank, int32_t outer_size) {
  return inner_rank * outer_size + outer_rank;
}

}  // namespace reference
