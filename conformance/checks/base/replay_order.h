// replay_order.h: in which order did the events of all ranks run, for checks that each walk it?
#pragma once
#include <cstdint>
#include <vector>

#include "conformance/checks/base/replay.h"

namespace shardproof {

// One order in which the traces can run (replay.h), kept for several visitors.
class ReplayOrder {
 public:
  ReplayOrder() = default;
  explicit ReplayOrder(const std::vector<Trace>& traces);
  const ReplayResult& result() const { return result_; }
  void Visit(ReplayVisitor& visitor) const;

 private:
  class Keeper;
  std::vector<ReplayVisitor::Member> members_;  // of all operations, one after another
  std::vector<int32_t> counts_;                 // of members of each collective; 0: local work
  ReplayResult result_;
};

}  // namespace shardproof
