#include "conformance/runner/command/event_text.h"

#include "conformance/common/at.h"
#include "conformance/common/dtype.h"
#include "conformance/fabric/run_collective.h"
#include "conformance/host/host.h"
#include "conformance/host/memory_map.h"
#include "conformance/trace/names.h"

namespace shardproof {

std::string EventText(const Trace& trace, const Event& event) {
  std::string text(At(trace_names::kKinds, static_cast<int>(event.kind)));
  const auto add = [&text](const std::string& part) { text += " " + part; };
  if (event.text >= 0) add("\"" + std::string(trace.Text(event.text)) + "\"");
  if (event.text2 >= 0) add(std::string(trace.Text(event.text2)));
  if (event.kind == EventKind::kCollective) add(std::string(CollectiveName(event.collective)));
  if (event.group >= 0) add("on " + At(trace.groups, event.group).name);
  if (event.stream >= 0 && static_cast<size_t>(event.stream) < trace.streams.size()) {
    add("stream " + At(trace.streams, event.stream));
  }
  if (event.event >= 0)
    add("event " + std::to_string(event.event) + (event.flag ? "" : " (no record)"));
  if (event.alloc >= 0) add("block " + std::to_string(event.alloc));
  if (event.id >= 0) add("id " + std::to_string(event.id));
  if (event.kind == EventKind::kCompute) {
    constexpr const char* kPhases[] = {"FWD", "BWD", "DGRAD", "WGRAD"};
    add(kPhases[event.phase]);
  }
  if (event.microbatch >= 0) add("microbatch " + std::to_string(event.microbatch));
  if (event.count > 0)
    add(std::to_string(event.count) + (event.dtype != 0 ? " x " + DtypeName(event.dtype) : ""));
  if (event.purpose != 0) add(std::string("(") + PurposeName(event.purpose) + ")");
  for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i) {
    const Range& r = trace.ranges[i];
    add(std::string(r.access == kRead    ? "reads "
                    : r.access == kWrite ? "writes "
                                         : "updates ") +
        std::to_string(r.alloc) + "[" + std::to_string(r.offset) + "," +
        std::to_string(r.offset + r.length) + ")");
  }
  return text;
}

}  // namespace shardproof
