// digest.h: how are values summarised so that shards add up to the whole?
//
// digest(range) = sum over elements of Mix(index * golden + Mix(bits)) mod 2^64, index counted in
// the logical tensor. It is additive over disjoint ranges: shards published by different owners add
// up to the digest of the whole. -0 counts as +0 (values are compared, not memory); every NaN
// counts as itself.
#pragma once
#include <cstdint>

namespace shardproof {

constexpr uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

constexpr uint64_t DigestElement(int64_t index, uint64_t bits) {
  return Mix(static_cast<uint64_t>(index) * 0x9E3779B97F4A7C15u + Mix(bits));
}

// Digest of count elements of dtype (spf_dtype) at data; the first has the given index.
uint64_t DigestValues(const void* data, int32_t dtype, int64_t first_index, int64_t count);

// Element i of data, widened. I64 beyond 2^53 rounds.
double ValueAt(const void* data, int32_t dtype, int64_t i);

}  // namespace shardproof
