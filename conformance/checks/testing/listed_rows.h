// listed_rows.h: how is a trace that a test has made read row by row?
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "conformance/trace/trace_cursor.h"

namespace shardproof {

class ListedRows : public TraceCursor {
 public:
  explicit ListedRows(Trace trace) : all_(std::move(trace)) {
    trace_ = all_;
    trace_.events.clear();
    trace_.ranges.clear();
    trace_.reads.clear();
    trace_.numbers.clear();
    trace_.values.clear();
  }
  void Begin() override {}
  bool Next() override {
    if (next_ == all_.events.size()) return false;
    Event event = all_.events[next_++];
    Copy(all_.ranges, event.ranges, trace_.ranges);
    Copy(all_.numbers, event.ranks, trace_.numbers);
    Copy(all_.numbers, event.send_counts, trace_.numbers);
    Copy(all_.numbers, event.recv_counts, trace_.numbers);
    trace_.end = all_.end;
    trace_.events.push_back(event);
    return true;
  }

 private:
  template <class Pool>
  static void Copy(const Pool& from, Slice& slice, Pool& to) {
    const auto begin = static_cast<uint32_t>(to.size());
    to.insert(to.end(), from.begin() + slice.begin, from.begin() + slice.end);
    slice = {begin, static_cast<uint32_t>(to.size())};
  }

  const Trace all_;
  size_t next_ = 0;
};

inline std::vector<std::unique_ptr<TraceCursor>> ListRows(const std::vector<Trace>& traces) {
  std::vector<std::unique_ptr<TraceCursor>> cursors;
  for (const Trace& trace : traces) cursors.push_back(std::make_unique<ListedRows>(trace));
  return cursors;
}

}  // namespace shardproof
