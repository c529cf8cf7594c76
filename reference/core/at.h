// at.h: how do signed ids and numbers of elements meet what counts without a sign?
#pragma once
#include <cstddef>
#include <cstdint>

namespace reference {

// The element with an id of the tables. REQUIRES: 0 <= id < the number of elements.
template <typename Container, typename Id>
decltype(auto) At(Container&& of, Id id) {
  return of[static_cast<size_t>(id)];
}

template <typename Container>
int32_t Length(const Container& of) {
  return static_cast<int32_t>(of.size());
}

// As calls of the host count. REQUIRES: 0 <= n.
inline uint64_t Count(int64_t n) { return static_cast<uint64_t>(n); }

}  // namespace reference
