// aligned_layout.h: where do whole parameters lie in a buffer of equal shards, so that an ordinary
// reduce-scatter gives each owner its gradients and an ordinary all-gather brings weights back?
//
// A bucket is N equal shards, one per rank; no parameter crosses a shard's edge, and shards are
// filled so that ranks have about equal Newton-Schulz work. What is left over is padding, which
// nobody's norm, count or update may read. A pure function of shapes and order.
#pragma once
#include "reference/layerwise/ownership.h"

namespace reference {

// Multiplications of one Newton-Schulz iteration up to a constant, m n min(m, n) for a matrix; what
// is stepped element by element costs its elements.
int64_t StepCost(const ParamFacts& param);

struct AlignedItem {
  int32_t param = -1;
  int64_t begin = 0, numel = 0;  // elements, in the buffer
};

// Elements [begin, begin + shards * shard_size) of the buffer.
struct AlignedBucket {
  int64_t begin = 0, shard_size = 0;
  std::vector<AlignedItem> items;  // by begin
};

struct AlignedLayout {
  int32_t shards = 1;  // must be the size of the group that reduces and gathers
  std::vector<AlignedBucket> buckets;
  std::vector<int64_t> cost;  // by shard, over all buckets

  int64_t size() const;  // elements, padding included
  // By shard. Throws std::logic_error if a parameter crosses the edge of a shard.
  RankLists Owners() const;
};

// Trainable parameters of one kind (all dense, or all expert), in model order; they are laid out
// from the last one to the first. A bucket is closed before a parameter that would make its shards
// grow, once it holds bucket_size elements (0: never) and nine tenths of what its largest parameter
// makes of N equal shards. A tied embedding has a bucket of its own, in shard 0. Throws
// std::invalid_argument for shards below 1, a bucket_size below 0, or parameters of both kinds.
AlignedLayout LayOutAligned(const std::vector<ParamFacts>& params, int32_t shards,
                            int64_t bucket_size = 0);

}  // namespace reference
