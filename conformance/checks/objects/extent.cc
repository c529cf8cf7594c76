#include "conformance/checks/objects/extent.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/program/collective_kinds.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof {

namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

int64_t Times(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kMost : product;
}

int64_t Sum(const Trace& trace, Slice counts) {
  int64_t sum = 0;
  for (uint32_t i = counts.begin; i < counts.end; ++i) {
    if (__builtin_add_overflow(sum, trace.numbers[i], &sum)) return kMost;
  }
  return sum;
}

// Elements that the rank at place me of n members reads and writes.
Extent Elements(const Trace& trace, const Event& event, int64_t n, int64_t me) {
  const int64_t k = event.count, all = Times(n, k);
  const bool root = event.peer == me;
  switch (event.collective) {
    case SPF_ALL_GATHER:
      return {k, all};
    case SPF_ALL_GATHER_V:
      return {event.recv_counts.size() == n ? trace.numbers[event.recv_counts.begin + me] : 0,
              Sum(trace, event.recv_counts)};
    case SPF_REDUCE_SCATTER:
      return {all, k};
    case SPF_ALL_REDUCE:
      return {k, k};
    case SPF_BROADCAST:  // a root that sends in place writes nothing
      return root ? Extent{k, 0} : Extent{0, k};
    case SPF_ALL_TO_ALL_V:
      return {Sum(trace, event.send_counts), Sum(trace, event.recv_counts)};
    case SPF_SEND:
      return {k, 0};
    case SPF_RECV:
      return {0, k};
    case graph::kReduce:
      return {k, root ? k : 0};
    case graph::kGather:
      return {k, root ? all : 0};
    case graph::kScatter:
      return {root ? all : 0, k};
    default:
      return {};
  }
}

// Its index; their number if it is none of them. In a group of the whole world it is where it
// should be: with thousands of ranks a search for each collective is what a check takes.
int64_t PlaceAmong(const std::vector<int32_t>& ranks, int32_t rank) {
  const auto expected = static_cast<size_t>(rank);
  if (expected < ranks.size() && ranks[expected] == rank) return rank;
  return std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
}

}  // namespace

std::optional<Extent> ExtentOf(const Trace& trace, const Event& event) {
  Extent elements;
  switch (event.kind) {
    case EventKind::kInit:
      elements = {0, event.count};
      break;
    case EventKind::kPublish:
      elements = {event.count, 0};
      break;
    case EventKind::kCollective: {
      const std::vector<int32_t>& ranks = At(trace.groups, event.group).world_ranks;
      const int64_t me = PlaceAmong(ranks, trace.rank);
      if (me == Length(ranks)) return std::nullopt;
      elements = Elements(trace, event, Length(ranks), me);
      break;
    }
    default:
      return std::nullopt;
  }
  if (!IsDtype(event.dtype)) return std::nullopt;
  const auto width = static_cast<int64_t>(DtypeBytes(event.dtype));
  return Extent{Times(elements.read, width), Times(elements.write, width)};
}

}  // namespace shardproof
