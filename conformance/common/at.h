// at.h: how is a vector read by an id of the tables, which is signed?
//
// Ids of modules, parameters, values, ranks and events are signed, because -1 means none. A vector
// indexed by one is read as At(vector, id), and asked for its length in ids as Length(vector).
#pragma once
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace shardproof {

// REQUIRES: 0 <= id < the number of elements.
template <typename Container, std::integral Id>
constexpr decltype(auto) At(Container& of, Id id) {
  assert(id >= 0 && static_cast<size_t>(id) < of.size());
  return of[static_cast<size_t>(id)];
}

// REQUIRES: fewer than 2^31 elements.
template <typename Container>
constexpr int32_t Length(const Container& of) {
  return static_cast<int32_t>(of.size());
}

}  // namespace shardproof
