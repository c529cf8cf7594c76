// holds.h: which value of a node do bytes hold, and what of which ranks has met in it?
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "conformance/checks/base/contents.h"
#include "conformance/checks/base/range_map.h"
#include "conformance/checks/tensor_parallel/meetings.h"

namespace shardproof {

// A value of a microbatch, or its gradient (table), as a node has written it: how often collectives
// have summed or gathered it since, and whose summands messages and additions brought together.
struct Holds {
  int32_t instance = 0, table = 0, value = -1, call = -1, microbatch = -1, sums = 0;
  int32_t of = 0;  // RankSets
  auto operator<=>(const Holds&) const = default;

  bool SameName(const Holds& other) const {
    return std::tie(instance, table, value) == std::tie(other.instance, other.table, other.value);
  }
  bool SameValue(const Holds& other) const {
    return SameName(other) && call == other.call && microbatch == other.microbatch;
  }
};
using HeldPiece = RangeMap<Holds>::Piece;

// Ranks, each as often as it is in, by number.
class RankSets {
 public:
  int32_t Of(int32_t rank) { return sets_.Of({.rank = static_cast<int16_t>(rank)}); }
  int32_t Union(int32_t a, int32_t b) { return sets_.Union(a, b); }
  std::vector<int32_t> Ranks(int32_t set) const;

 private:
  ContributionSets sets_;
};

// y += x, of bytes that begin at 0 on both sides: what is a sum of summands of one value. A trace
// does not have the factors of SPF_K_AXPBY: an average is told by its results.
std::vector<HeldPiece> SumOf(const std::vector<HeldPiece>& x, const std::vector<HeldPiece>& y,
                             RankSets& ranks);

// Of a range that a node reads, what holds one value.
struct HeldBytes {
  int64_t known = 0, stale = 0;  // bytes of it; of what another microbatch or call has left there
  int32_t least = INT32_MAX, most = 0;  // collectives that it went through
  std::map<int32_t, int64_t> of;        // bytes by RankSets
};
HeldBytes HeldIn(const std::vector<HeldPiece>& pieces, const Holds& value);

// Ranks whose summands, or parts, messages and additions have brought together, ascending; of sums
// the first that are not `wanted`.
std::vector<int32_t> MetByMessages(const HeldBytes& held, bool gathered,
                                   const std::vector<int32_t>& wanted, const RankSets& ranks);

}  // namespace shardproof
