// replay.h: in which order could the device work of all ranks have run?
//
// Executes the traces of a run without data: host threads issue, streams run their entries in
// order, waits and collectives hold them. In a run without races every legal order gives the same
// bytes, so one is enough.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/checks/base/check.h"

namespace shardproof {

// Receives the work in execution order.
class ReplayVisitor {
 public:
  struct Member {
    int32_t rank = 0;
    int64_t event = -1;
  };
  virtual ~ReplayVisitor() = default;
  virtual void OnLocal(int32_t rank, int64_t event) = 0;  // every kind but collectives
  // All members of one matched operation, by rank of the group; for a send and its receive:
  // {sender, receiver}.
  virtual void OnCollective(const std::vector<Member>& members) = 0;
};

struct ReplayResult {
  bool complete = true;
  std::string why;  // why not: an operation that never got all its members, and on which rank
};

ReplayResult Replay(const std::vector<Trace>& traces, ReplayVisitor& visitor);

}  // namespace shardproof
