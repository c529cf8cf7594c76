// deadlock.h: can any timing hang?
//
// A trace fixes what each host thread issued, on which stream, and where it blocked; not when
// anything ran. If the graph of what must precede what has no cycle, no timing hangs; if it has
// one, every run that reaches it hangs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "conformance/checks/base/check.h"
#include "conformance/checks/graph/kstar.h"
#include "conformance/checks/graph/matching.h"
#include "conformance/checks/program/program.h"
#include "conformance/checks/program/wait_graph.h"

namespace shardproof::graph {

// Does no timing hang on a machine of this profile?
bool Safe(const Program& program, Profile profile);

// The same as a finding of the requirement: a cyclic wait; none: there is no cycle. before and
// after are what its message says around "rank 2 waits for rank 0, ...". cut: the run was ended, so
// that ranks would have issued what is missing of them behind what holds their hosts.
std::optional<Finding> HangOn(const Program& program, Profile profile, bool cut,
                              const char* requirement, const std::string& before,
                              const std::string& after);

// Do the operations match, and does no timing hang with slots enough (E0)? Only then has the order
// of the run a meaning.
bool Sound(const Program& program);

// A cyclic wait in words. Events are named as "rank 2, event 7" at the begin of a line, and then as
// "(event 5)" of the same rank.
struct Circle {
  std::string lines;  // a line for each rank: what waits there, what it is behind, and for whom
  std::string ranks;  // "rank 2 waits for rank 0, which waits for rank 2"
};
// cycle: nodes of the graph.
Circle ExplainCycle(const Program& program, const WaitGraph& graph, Profile profile,
                    const std::vector<uint32_t>& cycle);

// A path of the graph as a list of entries, in order of time.
std::string ExplainPath(const Program& program, const WaitGraph& graph,
                        const std::vector<uint32_t>& path);

struct DeadlockVerdict {
  bool e0 = false;                  // no cycle: races can be judged
  std::vector<bool> never_started;  // by entry, if the run was cut: it did not start in this run
};

// The note on a program that no timing of these machines hangs.
std::string DeadlockNote(const KernelSlots& slots);

// GE-03, GE-04, GE-10; notes: E1, E2, E3, k*, slots. The program must match (or be cut).
DeadlockVerdict JudgeDeadlock(const Program& program, const Matching& matching,
                              CheckResult& result);

}  // namespace shardproof::graph
