#include "conformance/runner/replay/related.h"

#include <algorithm>
#include <map>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/program/describe.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

bool WholeBlock(EventKind kind) { return kind == EventKind::kAlloc || GivesBack(kind); }

// Does a change what b touches?
bool Changes(const Trace& trace, const Event& a, const Event& b) {
  const auto touches = [&](int32_t alloc, int64_t begin, int64_t end) {
    if (WholeBlock(b.kind)) return b.alloc == alloc;
    for (uint32_t i = b.ranges.begin; i < b.ranges.end; ++i) {
      const Range& range = trace.ranges[i];
      if (range.alloc == alloc && range.offset < end && begin < range.offset + range.length)
        return true;
    }
    return false;
  };
  if (WholeBlock(a.kind)) return touches(a.alloc, 0, INT64_MAX);
  for (uint32_t i = a.ranges.begin; i < a.ranges.end; ++i) {
    const Range& range = trace.ranges[i];
    if (range.access != kRead && touches(range.alloc, range.offset, range.offset + range.length))
      return true;
  }
  return false;
}

std::string Number(int64_t event) { return "#" + std::to_string(event); }

// The first event of the kind in [from, to) on the stream, of this device event if >= 0; else -1.
int64_t Find(const Trace& trace, EventKind kind, int32_t stream, int32_t device_event, int64_t from,
             int64_t to) {
  for (int64_t i = from; i < to; ++i) {
    const Event& event = At(trace.events, i);
    if (event.kind == kind && event.stream == stream &&
        (device_event < 0 || event.event == device_event))
      return i;
  }
  return -1;
}

// What lacks between work of one stream and later work of another one.
std::string BetweenStreams(const Trace& trace, int64_t first, int32_t from, int64_t second,
                           int32_t to) {
  const std::string waiting = graph::StreamName(trace, to);
  const int64_t record = Find(trace, EventKind::kRecord, from, -1, first + 1, second);
  if (record < 0) {
    return "no event is recorded on " + graph::StreamName(trace, from) + " between them for " +
           waiting + " to wait for";
  }
  const int32_t event = At(trace.events, record).event;
  std::string text = "event " + std::to_string(event) + " is recorded behind the former (" +
                     Number(record) + "), but " + waiting +
                     " does not wait for it before the latter";
  const int64_t late = Find(trace, EventKind::kWait, to, event, second + 1,
                            static_cast<int64_t>(trace.events.size()));
  if (late >= 0) text += " (only in " + Number(late) + ")";
  return text;
}

}  // namespace

std::vector<EventAt> OnOtherRanks(const Analysis& run, EventAt at) {
  const graph::Program* program = run.lowered().program();
  if (program == nullptr) return {};
  std::vector<EventAt> others;
  for (const graph::Part& part : program->parts) {
    const bool in_group = program->entries[part.entry].event == at.event;
    if (part.rank != at.rank || (part.event != at.event && !in_group)) continue;
    const graph::Sequence& sequence = At(program->sequences, part.sequence);
    for (size_t member = 0; member < sequence.ranks.size(); ++member) {
      if (sequence.ranks[member] == at.rank) continue;
      const std::vector<uint32_t>& parts = sequence.parts[member];
      const bool issued = part.position < parts.size();
      others.push_back({sequence.ranks[member],
                        issued ? int64_t{program->parts[parts[part.position]].event} : -1});
    }
  }
  std::sort(others.begin(), others.end());
  return others;
}

std::vector<EventAt> LastAccesses(const Analysis& run, EventAt at, size_t most) {
  const Trace& trace = run.trace(at.rank);
  std::vector<EventAt> found;
  for (int64_t i = at.event - 1; i >= 0 && found.size() < most; --i) {
    if (Changes(trace, At(trace.events, i), At(trace.events, at.event)))
      found.push_back({at.rank, i});
  }
  return found;
}

std::vector<EventAt> NextAccesses(const Analysis& run, EventAt at, size_t most) {
  const Trace& trace = run.trace(at.rank);
  std::vector<EventAt> found;
  if (At(trace.events, at.event).kind != EventKind::kAlloc) return found;
  for (int64_t i = at.event + 1; i < Length(trace.events) && found.size() < most; ++i) {
    if (Changes(trace, At(trace.events, i), At(trace.events, at.event)))
      found.push_back({at.rank, i});
  }
  return found;
}

std::vector<EventAt> HeldAt(const Analysis& run, EventAt at, size_t most) {
  const Trace& trace = run.trace(at.rank);
  if (At(trace.events, at.event).kind != EventKind::kCallEnd) return {};
  std::map<int32_t, int64_t> live;  // by block: the event that allocated it
  for (int64_t i = 0; i < at.event; ++i) {
    const Event& event = At(trace.events, i);
    if (event.kind == EventKind::kAlloc && event.id != SPF_PINNED) live[event.alloc] = i;
    if (GivesBack(event.kind)) live.erase(event.alloc);
  }
  std::vector<EventAt> held;
  for (const auto& [block, event] : live) held.push_back({at.rank, event});
  std::stable_sort(held.begin(), held.end(), [&](const EventAt& a, const EventAt& b) {
    return At(trace.events, a.event).count > At(trace.events, b.event).count;
  });
  if (held.size() > most) held.resize(most);
  return held;
}

std::string MissingOrder(const Analysis& run, int32_t rank, int64_t first, int64_t second) {
  if (run.lowered().program() == nullptr) return "";
  const uint32_t a = run.lowered().EntryAt(rank, first), b = run.lowered().EntryAt(rank, second);
  graph::MustOrder& order = run.lowered().must();
  if (a == graph::kNone || b == graph::kNone || a == b || order.HasCycle() ||
      !order.Unordered(a, b))
    return "";
  const Trace& trace = run.trace(rank);
  // The end of a group operation has no stream of its own: its collectives have.
  const int32_t from = run.lowered().program()->entries[a].stream;
  const int32_t to = run.lowered().program()->entries[b].stream;
  const auto name = [&](int64_t event, int32_t stream) {
    return Number(event) + " (" + graph::StreamName(trace, stream) + ")";
  };
  return "rank " + std::to_string(rank) + ": " + name(first, from) + " before " + name(second, to) +
         "; " +
         (to < 0     ? "the host does not wait for the former"
          : from < 0 ? "the latter is issued before the host is done"
                     : BetweenStreams(trace, first, from, second, to));
}

}  // namespace shardproof
