// flow.h: which parameter elements and which gradient contributions went where?
//
// Follows the meaning of bytes (contents.h) through every operation of all ranks, in an order in
// which they could have run (replay.h). Self-declared purposes play no part: what a collective
// carried follows from who wrote its bytes.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/checks/base/check.h"
#include "conformance/checks/base/contents.h"
#include "conformance/checks/base/event_ranges.h"
#include "conformance/checks/base/facts.h"
#include "conformance/checks/base/replay_order.h"

namespace shardproof {

// What one event found and left, one entry for each of its ranges.
struct EventFlow {
  std::vector<std::vector<Chunk>> before;
  std::vector<std::vector<Chunk>> after;  // of written ranges; else empty
  bool ran = false;
};

class Flow {
 public:
  Flow(const Run& run, const std::vector<std::unique_ptr<InstanceFacts>>& instances);

  bool complete() const { return complete_; }
  const std::string& why() const { return why_; }
  const EventFlow& At(int32_t rank, int64_t event) const {
    return events_[size_t(rank)][size_t(event)];
  }
  const ContributionSets& sets() const { return sets_; }
  const ReplayOrder& order() const { return order_; }  // REQUIRES: complete()

 private:
  class Visitor;
  bool complete_ = true;
  std::string why_;
  std::vector<std::vector<EventFlow>> events_;
  ContributionSets sets_;
  ReplayOrder order_;
};

// A range's chunks that are parameter (or gradient) elements.
std::vector<Chunk> Only(const std::vector<Chunk>& chunks, Content::Kind kind);

}  // namespace shardproof
