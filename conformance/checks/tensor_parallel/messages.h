// messages.h: from whom does a rank receive by messages and broadcasts?
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/base/replay.h"

namespace shardproof {

// Sends and receives, and broadcasts, of all ranks, as they match. Without flow: none.
class Messages {
 public:
  using Member = ReplayVisitor::Member;
  explicit Messages(const Analysis& a);
  // Null: the event receives no message from a rank of the same stage, or nobody knows from whom.
  const Member* SenderOf(int32_t rank, int64_t event) const;
  bool Sends(int32_t rank, int64_t event) const { return senders_.contains({rank, event}); }

 private:
  class Matched;
  std::map<std::pair<int32_t, int64_t>, Member> sender_of_;  // by receiver
  std::set<std::pair<int32_t, int64_t>> senders_;
};

}  // namespace shardproof
