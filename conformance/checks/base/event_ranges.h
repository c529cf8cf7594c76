// event_ranges.h: which bytes does an operation send, receive, or copy?
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof {

// Two ranges have bytes in common.
inline bool Meet(const Range& a, const Range& b) {
  return a.alloc == b.alloc && a.offset < b.offset + b.length && b.offset < a.offset + a.length;
}

// The ranges that a collective sends from and receives into; null when it has none.
const Range* SendRange(const Trace& trace, const Event& event);
const Range* RecvRange(const Trace& trace, const Event& event);
// Of a copy: runs of one length each, from where to where. All that is read, end to end, goes to
// all that is written, end to end.
std::vector<std::pair<Range, Range>> CopiedRuns(const Trace& trace, const Event& event);
size_t RangeIndex(const Trace& trace, const Event& event, const Range* range);

}  // namespace shardproof
