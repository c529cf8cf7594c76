#include "conformance/trace/row_bounds.h"

#include <stdexcept>
#include <string>

namespace shardproof {

void CheckBounds(const Trace& trace, size_t index) {
  const Event& event = trace.events[index];
  const auto inside = [](Slice slice, size_t size) {
    return slice.begin <= slice.end && slice.end <= size;
  };
  const auto text = [&](int32_t i) { return i < static_cast<int64_t>(trace.strings.size()); };
  const auto has_values = [&](int64_t first, int64_t count) {
    return first < 0 || (count >= 0 && first + count <= static_cast<int64_t>(trace.values.size()));
  };
  bool ok =
      event.kind < EventKind::kCount_ && text(event.text) && text(event.text2) && text(event.place);
  ok = ok && inside(event.ranges, trace.ranges.size()) && inside(event.reads, trace.reads.size());
  for (const Slice slice : {event.ranks, event.send_counts, event.recv_counts})
    ok = ok && inside(slice, trace.numbers.size());
  ok = ok && has_values(event.values, event.count);
  for (uint32_t i = event.reads.begin; ok && i < event.reads.end; ++i)
    ok = has_values(trace.reads[i].values, trace.reads[i].count);
  if (ok) return;
  throw std::invalid_argument("rank " + std::to_string(trace.rank) + ", event " +
                              std::to_string(index) +
                              ": an index or slice lies outside the trace's tables");
}

}  // namespace shardproof
