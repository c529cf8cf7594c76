// related.h: which events have part in what is wrong at one event?
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/checks/base/analysis.h"

namespace shardproof {

struct EventAt {
  int32_t rank = -1;
  int64_t event = -1;
  auto operator<=>(const EventAt&) const = default;
};

// The same operation on the other ranks, in the order of their ranks, or those of the group
// operation that it ends; event -1: that member never issues it. Empty: it is no operation of
// several ranks.
std::vector<EventAt> OnOtherRanks(const Analysis& run, EventAt at);

// The last events before it, on its rank, that write, allocate or free what it touches; the last
// one first.
std::vector<EventAt> LastAccesses(const Analysis& run, EventAt at, size_t most);

// Of an allocation: the first events behind it, on its rank, that change or give back the block.
std::vector<EventAt> NextAccesses(const Analysis& run, EventAt at, size_t most);

// Of the end of an entry call: the allocations of the largest blocks of device memory that the rank
// then holds, the largest first.
std::vector<EventAt> HeldAt(const Analysis& run, EventAt at, size_t most);

// Of two events of one rank that nothing orders: what there is of an order, and what lacks. Empty:
// they are ordered, or are no work.
std::string MissingOrder(const Analysis& run, int32_t rank, int64_t first, int64_t second);

}  // namespace shardproof
