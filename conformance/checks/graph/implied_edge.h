// implied_edge.h: is a synchronisation needed, or do others already give its order?
//
// Answers for one wait or host sync of a recorded run: without it there is a race (which), or a
// proof that there is none.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/checks/base/check.h"
#include "conformance/checks/program/program.h"
#include "conformance/trace/event.h"

namespace shardproof {

// A wait, event sync, stream sync or device sync that waits for something.
struct SyncEdge {
  int32_t rank = 0;
  int64_t event = 0;
};
std::vector<SyncEdge> FindSyncEdges(const std::vector<Trace>& traces);

struct EdgeVerdict {
  enum class Kind : uint8_t {
    kNeeded,       // without it there are races: findings
    kImplied,      // what it waits for precedes all that follows it anyhow
    kUnused,       // it orders no two conflicting accesses
    kCovered,      // it orders some, but each of them is ordered without it
    kNotCheckable  // why: in proof
  };
  Kind kind = Kind::kNotCheckable;
  std::string edge;   // "rank 0: wait for event 3 (stream compute)"
  std::string proof;  // in words
  std::vector<Finding> findings;
};

// The run must match, have no cycle and no race. Throws std::invalid_argument if the event is no
// synchronisation.
EdgeVerdict JudgeEdge(const std::vector<Trace>& traces, const SyncEdge& edge,
                      const graph::Names& names = {});

}  // namespace shardproof
