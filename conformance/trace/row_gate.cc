#include "conformance/trace/row_gate.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "conformance/common/at.h"
#include "conformance/trace/event_keys.h"
#include "conformance/trace/json_fields.h"
#include "conformance/trace/names.h"

namespace shardproof {
namespace {

void CheckKind(const Event& event, uint64_t seen) {
  if ((seen & Bit("e")) == 0) throw LineError{"an event line without \"e\""};
  if (event.breaks != 0 && event.kind != EventKind::kRefused)
    throw LineError{
        "\"breaks\" tells what a refused call would have broken: it stands only in refused"};
  const uint64_t required = kRequiredKeys[static_cast<size_t>(event.kind)];
  uint64_t missing = required & ~seen;
  if (event.event < 0) missing |= required & Bit("ev");
  if (event.stream < 0) missing |= required & Bit("s");
  if (event.group < 0) missing |= required & Bit("g");
  if (event.parent < 0) missing |= required & Bit("pg");
  if (event.alloc < 0) missing |= required & Bit("a");
  if (missing == 0) return;
  throw LineError{"a " + std::string(trace_names::kKinds[static_cast<size_t>(event.kind)]) +
                  " event needs the key \"" + std::string(KeyOfBit(missing)) + "\""};
}

}  // namespace

void RowGate::AddGroup(GroupInfo group) {
  std::vector<int32_t> sorted = group.world_ranks;
  std::sort(sorted.begin(), sorted.end());
  const bool twice = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  if (group.comm.empty() || sorted.empty()) throw LineError{"a group needs \"comm\" and \"ranks\""};
  if (twice)
    throw LineError{"group " + std::to_string(trace_.groups.size()) + " lists a rank twice"};
  trace_.groups.push_back(std::move(group));
}

// After this, checks can follow groups, streams and peers without looking.
void RowGate::CheckIndices(const Event& event, int64_t values) {
  const auto groups = static_cast<int64_t>(trace_.groups.size());
  const auto outside = [](std::string_view what, int64_t index, const std::string& hint) {
    throw LineError{std::string(what) + " " + std::to_string(index) + " is not defined: " + hint};
  };
  if (event.group >= groups) outside("group", event.group, "a line {\"group\":..} must come first");
  if (event.parent >= groups)
    outside("group", event.parent, "a line {\"group\":..} must come first");
  const auto streams = static_cast<int64_t>(trace_.streams.size());
  if (event.stream >= streams) {
    const bool defines = event.kind == EventKind::kStreamCreate && event.stream == streams;
    if (!defines)
      outside("stream", event.stream,
              "a line {\"stream\":..} or a stream_create event must come first");
    trace_.streams.emplace_back(trace_.Text(event.text));
  }
  const auto members = [&](int32_t group) {
    return group < 0 ? kMaxId : static_cast<int64_t>(At(trace_.groups, group).world_ranks.size());
  };
  if (event.peer >= members(event.group)) outside("peer", event.peer, "it is a rank of the group");
  for (uint32_t i = event.ranks.begin; i < event.ranks.end; ++i) {
    if (trace_.numbers[i] >= members(event.parent))
      outside("rank", trace_.numbers[i], "it is a rank of the parent group");
  }
  if (event.values >= 0 && values != event.count)
    throw LineError{"\"v\" needs as many values as \"k\" says"};
}

void RowGate::Add(const Event& event, uint64_t seen, int64_t values) {
  CheckKind(event, seen);
  CheckIndices(event, values);
  const std::string broken = rules_.See(event);
  if (!broken.empty()) throw LineError{broken};
  trace_.events.push_back(event);
  ++events_;
}

void RowGate::End(TraceEnd end) const {
  const std::string open = rules_.AtEnd(end);
  if (!open.empty()) throw LineError{open};
}

}  // namespace shardproof
