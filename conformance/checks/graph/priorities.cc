#include "conformance/checks/graph/priorities.h"

#include <map>

#include "conformance/checks/program/describe.h"

namespace shardproof::graph {

namespace {

// By stream; streams that are only defined by a line have none.
std::map<int32_t, int32_t> PrioritiesOf(const Trace& trace) {
  std::map<int32_t, int32_t> priorities;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kStreamCreate) priorities[event.stream] = event.id;
  }
  return priorities;
}

}  // namespace

std::string PrioritiesThatDiffer(const Program& program) {
  for (size_t rank = 0; rank + 1 < program.first_entry.size(); ++rank) {
    const Trace& trace = (*program.traces)[rank];
    const std::map<int32_t, int32_t> priorities = PrioritiesOf(trace);
    auto first = priorities.end();
    for (uint32_t e = program.first_entry[rank]; e < program.first_entry[rank + 1]; ++e) {
      if (program.entries[e].kind != EntryKind::kKernel) continue;
      const auto mine = priorities.find(program.entries[e].stream);
      if (mine == priorities.end()) continue;
      if (first == priorities.end()) first = mine;
      if (mine->second == first->second) continue;
      return StreamName(trace, first->first) + " and " + StreamName(trace, mine->first) +
             " of rank " + std::to_string(rank) + " have priorities " +
             std::to_string(first->second) + " and " + std::to_string(mine->second);
    }
  }
  return "";
}

}  // namespace shardproof::graph
