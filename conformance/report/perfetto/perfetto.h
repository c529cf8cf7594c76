// perfetto.h: how does a run look in ui.perfetto.dev?
#pragma once
#include <string>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof {

// JSON in the format of trace events that Perfetto and chrome://tracing open. A process for each
// rank, with a track for its host and for each stream; each event is one slice, called as findings
// call it, with its number in `args`. Flows lead from a record to its waits and join the parts of a
// collective; a counter for each rank has the bytes of its blocks, by purpose.
//
// Traces have no times. A slice lies where its rank issues it, and the parts of a collective lie at
// one time where their order allows that: what is drawn is order, never how long something took.
std::string PerfettoJson(const std::vector<Trace>& traces);

}  // namespace shardproof
