#include "conformance/checks/tensor_parallel/holds.h"

#include <algorithm>

namespace shardproof {

namespace {
constexpr int16_t kOften = 3;  // more is said as this
}  // namespace

std::vector<int32_t> RankSets::Ranks(int32_t set) const {
  std::vector<int32_t> ranks;
  for (const Contribution& one : sets_.Get(set))
    ranks.insert(ranks.end(), static_cast<size_t>(std::min<int16_t>(one.times, kOften)), one.rank);
  return ranks;
}

std::vector<HeldPiece> SumOf(const std::vector<HeldPiece>& x, const std::vector<HeldPiece>& y,
                             RankSets& ranks) {
  std::vector<HeldPiece> sums;
  for (const HeldPiece& a : x) {
    for (const HeldPiece& b : y) {
      const int64_t begin = std::max(a.begin, b.begin), end = std::min(a.end, b.end);
      if (begin >= end || !a.value.SameValue(b.value) || a.value.sums + b.value.sums > 0) continue;
      Holds sum = a.value;
      sum.of = ranks.Union(a.value.of, b.value.of);
      sums.push_back({begin, end, sum});
    }
  }
  return sums;
}

HeldBytes HeldIn(const std::vector<HeldPiece>& pieces, const Holds& value) {
  HeldBytes held;
  for (const HeldPiece& piece : pieces) {
    if (!piece.value.SameName(value)) continue;
    const bool same = piece.value.SameValue(value);
    const int64_t bytes = piece.end - piece.begin;
    (same ? held.known : held.stale) += bytes;
    if (!same) continue;
    held.least = std::min(held.least, piece.value.sums);
    held.most = std::max(held.most, piece.value.sums);
    held.of[piece.value.of] += bytes;
  }
  return held;
}

std::vector<int32_t> MetByMessages(const HeldBytes& held, bool gathered,
                                   const std::vector<int32_t>& wanted, const RankSets& ranks) {
  std::vector<int32_t> met;
  for (const auto& [set, bytes] : held.of) {
    const std::vector<int32_t> some = ranks.Ranks(set);
    if (!gathered && some != wanted) return some;
    if (!gathered) met = some;
    // What has more bytes than a part counts as several.
    const int64_t parts = bytes * static_cast<int64_t>(wanted.size());
    for (int64_t at = 0; gathered && at < parts; at += held.known)
      met.insert(met.end(), some.begin(), some.end());
  }
  std::sort(met.begin(), met.end());
  return met;
}

}  // namespace shardproof
