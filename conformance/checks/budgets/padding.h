// padding.h: how many bytes beyond its parameters may one collective move?
#pragma once
#include <cstdint>
#include <vector>

namespace shardproof {

// What a collective carries of one parameter, in bytes of the wire.
struct Piece {
  int64_t bytes = 0;
  int64_t row = 1;    // of the parameter, in bytes
  int64_t width = 4;  // of an element
};

// The most that one of the published layouts adds (abi/KNOBS.md, "Budgets"): rows of each parameter
// padded to the ranks; elements at multiples of 64, and buckets at multiples of lcm(ranks, 128) or
// of equal shards of `alignment` bytes; buckets at multiples of rows. ranks: that the collective,
// or the sharding as a whole, is over. REQUIRES: ranks, alignment > 0.
int64_t MostPadding(const std::vector<Piece>& pieces, int64_t ranks, int64_t alignment);

}  // namespace shardproof
