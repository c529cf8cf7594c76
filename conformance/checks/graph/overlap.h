// overlap.h: can two pieces of work be in progress at the same time?
//
// By happens-before, not by luck: what nothing orders can overlap on a device with room for both.
// Order here includes everything that a machine may wait for (as in the deadlock check), so a "yes"
// holds on every machine.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "conformance/checks/program/digraph.h"
#include "conformance/checks/program/program.h"
#include "conformance/checks/program/wait_graph.h"

namespace shardproof::graph {

// Questions about one program, which must be free of cycles.
class Concurrency {
 public:
  explicit Concurrency(const Program& program);
  Concurrency(const Concurrency&) = delete;
  Concurrency& operator=(const Concurrency&) = delete;

  // Is neither over before the other starts, whatever the timing?
  bool Unordered(uint32_t a, uint32_t b) { return !Precedes(a, b) && !Precedes(b, a); }
  bool Precedes(uint32_t a, uint32_t b);  // a is over before b starts
  // Can a complete although b never does?
  bool CompletesWithout(uint32_t a, uint32_t b);
  // The entry of a row of a trace; kNone if it is none (a mark, a call of a group, ...).
  uint32_t EntryAt(int32_t rank, int64_t event) const;

 private:
  const Program& program_;
  WaitGraph graph_;
  TopologicalOrder order_;
  std::unique_ptr<Reachability> reachability_;
};

}  // namespace shardproof::graph
