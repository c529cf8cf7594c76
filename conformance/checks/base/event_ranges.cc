#include "conformance/checks/base/event_ranges.h"

#include <algorithm>

namespace shardproof {

const Range* SendRange(const Trace& trace, const Event& event) {
  for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i) {
    if ((trace.ranges[i].access & kRead) != 0) return &trace.ranges[i];
  }
  return nullptr;
}

const Range* RecvRange(const Trace& trace, const Event& event) {
  for (uint32_t i = event.ranges.end; i > event.ranges.begin; --i) {
    if ((trace.ranges[i - 1].access & kWrite) != 0) return &trace.ranges[i - 1];
  }
  return nullptr;
}

std::vector<std::pair<Range, Range>> CopiedRuns(const Trace& trace, const Event& event) {
  std::vector<Range> from, to;
  for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i) {
    const Range& range = trace.ranges[i];
    if (range.length > 0) ((range.access & kWrite) != 0 ? to : from).push_back(range);
  }
  std::vector<std::pair<Range, Range>> runs;
  for (size_t f = 0, t = 0; f < from.size() && t < to.size();) {
    const int64_t length = std::min(from[f].length, to[t].length);
    runs.emplace_back(from[f], to[t]);
    for (Range* range : {&runs.back().first, &runs.back().second}) range->length = length;
    for (Range* range : {&from[f], &to[t]}) {
      range->offset += length;
      range->length -= length;
    }
    f += from[f].length == 0;
    t += to[t].length == 0;
  }
  return runs;
}

size_t RangeIndex(const Trace& trace, const Event& event, const Range* range) {
  return static_cast<size_t>(range - (trace.ranges.data() + event.ranges.begin));
}

}  // namespace shardproof
