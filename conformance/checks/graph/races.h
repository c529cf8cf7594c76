// races.h: do two pieces of work touch the same bytes in no order, one of them writing?
//
// Order is what streams, events and the host give, and what an operation's result implies about its
// peers; not what an implementation happens to do. Two accesses of one rank race exactly if neither
// must be over before the other starts.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "conformance/checks/base/check.h"
#include "conformance/checks/program/digraph.h"
#include "conformance/checks/program/program.h"
#include "conformance/checks/program/wait_graph.h"

namespace shardproof::graph {

// What must precede what, over all ranks; built when first asked.
class MustOrder {
 public:
  // communicator_order: count on kernels of one communicator to run one after the other, whatever
  // their streams. An implementation may do so; an engine should not rely on it.
  explicit MustOrder(const Program& program, bool communicator_order = false)
      : program_(program), communicator_order_(communicator_order) {}
  bool communicator_order() const { return communicator_order_; }
  // Must a be over before b starts? Entries of any ranks.
  bool Precedes(uint32_t a, uint32_t b);
  // The path that shows it; empty: none.
  std::vector<uint32_t> Path(uint32_t a, uint32_t b);
  const WaitGraph& graph();

 private:
  void Build();
  const Program& program_;
  bool communicator_order_;
  WaitGraph graph_;
  TopologicalOrder order_;
  std::unique_ptr<Reachability> reachability_;
};

struct Race {
  uint32_t first = 0, second = 0;  // entries of one rank, in issue order
  int32_t alloc = -1;
  int64_t offset = 0, length = 0;  // of an overlap
  auto operator<=>(const Race&) const = default;
};

// At least one race for each race-prone range, in time about linear in the accesses. skip: entries
// that did not start (by entry; empty: all did).
std::vector<Race> FindRaces(const Program& program, MustOrder& order,
                            const std::vector<bool>& skip);

// All racing pairs, each once, by trying each pair of accesses. For small programs.
std::vector<Race> FindAllRaces(const Program& program, MustOrder& order);

// What an entry touches. Free and alloc write the whole block.
std::vector<Range> RangesOf(const Program& program, const Entry& entry);

// Findings for races: one for each kind of pair.
void ReportRaces(const Program& program, const std::vector<Race>& races, CheckResult& result);

// GE-05, GE-06, GE-11, and GE-07. The program must match and have no cycle.
void JudgeRaces(const Program& program, const std::vector<bool>& skip, CheckResult& result);

}  // namespace shardproof::graph
