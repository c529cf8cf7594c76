// small_numbers.h: what are the objects of one part called?
//
// Checks keep tables by number. In a long run numbers grow without end, and each part would fill
// tables for all that was before it.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof::parts {

// Of one kind of object: other numbers for one part, from 0 on as they come.
class SmallNumbers {
 public:
  void Rename(int32_t& id) {
    if (id < 0) return;
    const auto index = static_cast<size_t>(id);
    if (index >= names_.size()) names_.resize(index + 1 + names_.size() / 2, {0, 0});
    auto& [part, name] = names_[index];
    if (part != part_) part = part_, name = next_++;
    id = name;
  }
  void Cut() { ++part_, next_ = 0; }

 private:
  std::vector<std::pair<uint32_t, int32_t>> names_;  // by number: in which part, and how
  uint32_t part_ = 1;
  int32_t next_ = 0;
};

// Of one rank: blocks, event objects, requests and hand-overs.
class SmallNames {
 public:
  // The row, and what it touches.
  void Rename(Trace& trace, Event& event) {
    blocks_.Rename(event.alloc);
    events_.Rename(event.event);
    requests_.Rename(event.request);
    if (event.kind == EventKind::kRequestWait) requests_.Rename(event.id);
    if (event.kind == EventKind::kThreadPost || event.kind == EventKind::kThreadAwait)
      posts_.Rename(event.id);
    for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i)
      blocks_.Rename(trace.ranges[i].alloc);
  }
  void Cut() { blocks_.Cut(), events_.Cut(), requests_.Cut(), posts_.Cut(); }

 private:
  SmallNumbers blocks_, events_, requests_, posts_;
};

}  // namespace shardproof::parts
