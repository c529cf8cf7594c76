// event_line.h: how does one event of a trace read, with names where the trace has numbers?
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/checks/base/analysis.h"

namespace shardproof {

// Of one run, which must outlive it.
class EventLines {
 public:
  explicit EventLines(const Analysis& run);

  // "all_reduce of gradients on dp_cp (stream comm), f32 x 5456; updates block 1 (gradients) [0,
  // 21824)". Nodes, modules and parameters have the names of the case's model, blocks what their
  // allocation was labelled with. ranges: so many of the event's byte ranges at most, the others
  // are counted. REQUIRES: the rank has that event.
  std::string Text(int32_t rank, int64_t event, size_t ranges) const;
  // "block 1 (gradients)", as far as the rank's trace tells.
  std::string Block(int32_t rank, int32_t alloc) const;

 private:
  std::string Body(int32_t rank, int64_t event) const;
  std::string Parameter(int32_t rank, const Event& event) const;

  const Analysis& run_;
  std::vector<std::map<int32_t, std::string>> blocks_;  // by rank and allocation
};

}  // namespace shardproof
