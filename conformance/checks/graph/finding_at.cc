#include "conformance/checks/graph/finding_at.h"

#include "conformance/checks/program/describe.h"
#include "conformance/common/at.h"

namespace shardproof::graph {

Finding FindingAt(const char* requirement, const Program& program, int32_t rank, int64_t index) {
  const Trace& trace = program.trace(rank);
  Finding finding;
  finding.requirement = requirement;
  finding.rank = trace.rank;
  finding.event = index;
  const Event& event = At(trace.events, index);
  finding.operation = Describe(trace, event, program.names);
  if (event.stream >= 0) finding.stream = StreamName(trace, event.stream);
  for (const Event& other : trace.events) {
    if (other.kind != EventKind::kCallBegin || other.instance != event.instance ||
        other.call != event.call)
      continue;
    finding.step = other.id;
    break;
  }
  return finding;
}

}  // namespace shardproof::graph
