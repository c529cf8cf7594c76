// at.h: how is a vector read by an id of the tables, which is signed?
#pragma once
#include <cstddef>
#include <cstdint>

namespace reference {

// REQUIRES: 0 <= id < the number of elements.
template <typename Container, typename Id>
decltype(auto) At(Container& of, Id id) {
  return of[static_cast<size_t>(id)];
}

template <typename Container>
int32_t Length(const Container& of) {
  return static_cast<int32_t>(of.size());
}

}  // namespace reference
