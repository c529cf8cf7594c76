// list_alignment.h: what must be left out of two lists so that the rest of them is the same?
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "conformance/checks/graph/operation_signature.h"

namespace shardproof::graph {

struct List {
  std::vector<Signature> operations;
  bool open = false;  // more may follow, which is not known
};

// The fewest that are left out. Where a list is open, what the other has beyond its end counts not.
struct Alignment {
  std::vector<size_t> only_a, only_b;  // positions
  size_t end_a = 0, end_b = 0;         // so far the lists are aligned
  bool unique = false;                 // no other choice is as short
};
Alignment Align(const List& a, const List& b);

// How many from `first` on are the same in another order: the fewest, or all up to the shorter
// one's end. 0: none are.
size_t Reordered(const List& a, const List& b, size_t first, bool all);

}  // namespace shardproof::graph
