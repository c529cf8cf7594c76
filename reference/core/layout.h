// layout.h: where does each parameter lie in a bucket, and which part of it does a rank own?
//
// A bucket is one flat array, cut into equal shards, one per rank. It is a function of shapes only,
// the same for weights, gradients and optimizer state, and the same on all ranks (FS-29). No shard
// boundary splits a row (an index of dimension 0): row sizes within a bucket divide one another,
// the largest come first, and a shard is a multiple of the largest. So every row begins at a
// multiple of its own size, and padding is less than one row per shard, at the end.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/core/at.h"

namespace reference {

struct ParamShape {
  int32_t param = -1;
  int64_t numel = 0;
  int64_t row = 1;  // elements of one index of dimension 0; 1 for a vector
};

// Elements [offset, offset + numel) of the bucket hold the parameter.
struct BucketItem {
  int32_t param = -1;
  int64_t offset = 0, numel = 0;
};

// A piece of a parameter that lies in some range of a bucket.
struct BucketSlice {
  int32_t param = -1;
  int64_t param_offset = 0;  // elements, in the logical tensor
  int64_t range_offset = 0;  // elements, from the beginning of the range that was asked for
  int64_t count = 0;
};

struct BucketLayout {
  std::vector<BucketItem> items;
  int32_t shards = 1;
  int64_t size = 0;  // elements, padding included
  // Where each shard begins, and the end; empty: shards are equal, and size is a multiple of them.
  std::vector<int64_t> bounds;

  int64_t ShardBegin(int32_t shard) const {
    return bounds.empty() ? shard * (size / shards) : At(bounds, shard);
  }
  int64_t ShardSize(int32_t shard) const { return ShardBegin(shard + 1) - ShardBegin(shard); }
  // What lies in elements [begin, begin + count), in bucket order; padding is left out.
  std::vector<BucketSlice> Slices(int64_t begin, int64_t count) const;
};

// Whether parameters with these row sizes may share a bucket: one size divides the other.
bool RowsFit(int64_t a, int64_t b);

// Lays out the parameters over equal shards. Parameters with larger rows come first, otherwise in
// the order given. With one shard nothing is padded. Throws std::invalid_argument if two row sizes
// do not fit.
BucketLayout LayOut(std::vector<ParamShape> params, int32_t shards);

}  // namespace reference
