// traces_of_dumps.h: dumps of flight recorders as traces.
//
// Dumps tell what was issued on which group, with counts and dtypes, and what was done by then.
// They do not tell streams, bytes, roots, reductions or the counts of an all-to-all, so traces of
// them provide collectives alone. A ring keeps the last entries: of each group what all of its
// members still have is taken, from one sequence number on.
#pragma once
#include <string>
#include <vector>

#include "conformance/trace/event.h"
#include "conformance/trace/flight/dump.h"

namespace shardproof::flight {

struct DumpedRun {
  std::vector<Trace> traces;       // by rank of the world; of a rank without a dump: empty, aborted
  std::vector<std::string> notes;  // what was left out, and why
};

// Where an entry was not done, the traces are of a run that was ended, and whoever issued the entry
// waits for it. Throws std::invalid_argument where dumps contradict each other.
DumpedRun TracesOfDumps(const std::vector<Dump>& dumps);

}  // namespace shardproof::flight
