#include "conformance/checks/cause/place.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/cause/kind_of_mistake.h"
#include "conformance/common/at.h"

namespace shardproof::cause {

namespace {

constexpr uint64_t kEnd = UINT64_MAX;

int64_t EndOfCall(const Trace& trace, int64_t begin) {
  const Event& call = At(trace.events, begin);
  for (auto i = static_cast<size_t>(begin); i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind == EventKind::kCallEnd && event.instance == call.instance &&
        event.call == call.call)
      return static_cast<int64_t>(i);
  }
  return Length(trace.events) - 1;
}

}  // namespace

Places::Places(const graph::Lowered& lowered) : lowered_(lowered) {
  ordered_ = lowered_.program() != nullptr && !lowered_.may().HasCycle();
}

const Trace* Places::TraceOf(int32_t rank) const {
  const std::vector<Trace>& traces = lowered_.traces();
  return rank >= 0 && rank < Length(traces) ? &At(traces, rank) : nullptr;
}

Place Places::Of(const Finding& finding) const {
  Place place;
  place.rank = finding.rank;
  const Trace* trace = TraceOf(finding.rank);
  const Kind kind = TraitsOf(finding.requirement).kind;
  if (trace == nullptr || finding.event < 0 || finding.event >= Length(trace->events)) {
    // How a rank ended shows where its trace ends; of all else nobody knows when it was.
    if (trace != nullptr && kind == Kind::kFailures) place.first = Length(trace->events) - 1;
    place.time = kind == Kind::kAnswers ? 0 : kEnd;
    return place;
  }
  place.first = finding.begins >= 0 ? std::min(finding.begins, finding.event) : finding.event;
  place.last = finding.event;
  // What a call leaves out is known when it ends, what is left behind at the end of all.
  if (At(trace->events, finding.event).kind == EventKind::kCallBegin)
    place.last = EndOfCall(*trace, finding.event);
  if (kind == Kind::kTotals) place.last = -1;
  place.time = TimeOf(finding.rank, finding.event);
  return place;
}

bool Places::PublishTheSame(const Finding& a, const Finding& b) const {
  const Trace* trace = TraceOf(a.rank);
  if (trace == nullptr || a.rank != b.rank) return false;
  const auto published = [&](int64_t event) -> const Event* {
    if (event < 0 || event >= Length(trace->events)) return nullptr;
    const Event& at = At(trace->events, event);
    const bool of_parameter = at.result == SPF_RESULT_PARAM || at.result == SPF_RESULT_GRAD;
    return at.kind == EventKind::kPublish && of_parameter ? &at : nullptr;
  };
  const Event *x = published(a.event), *y = published(b.event);
  return x != nullptr && y != nullptr && x->instance == y->instance && x->id == y->id;
}

uint32_t Places::EntryFrom(int32_t rank, int64_t event) const {
  const Trace* trace = TraceOf(rank);
  if (trace == nullptr || lowered_.program() == nullptr) return graph::kNone;
  for (int64_t i = event; i < Length(trace->events); ++i) {
    const uint32_t entry = lowered_.EntryAt(rank, i);
    if (entry != graph::kNone) return entry;
  }
  return graph::kNone;
}

// Parts of one operation have one time. Without an order it is the event's number: ranks run one
// program.
uint64_t Places::TimeOf(int32_t rank, int64_t event) const {
  const uint32_t at = EntryFrom(rank, event);
  if (at == graph::kNone) return ordered_ ? kEnd - 1 : static_cast<uint64_t>(event);
  const graph::Program& program = *lowered_.program();
  const auto time_of = [&](uint32_t e) -> uint64_t {
    return ordered_ ? lowered_.may().StartPlace(e) : program.entries[e].event;
  };
  const graph::Entry& entry = program.entries[at];
  uint64_t time = ordered_ ? time_of(at) : static_cast<uint64_t>(event);
  for (uint32_t p = entry.parts.begin; p < entry.parts.end; ++p) {
    for (const uint32_t part : program.PartsOf(program.operation(program.parts[p])))
      time = std::min(time, time_of(program.parts[part].entry));
  }
  return time;
}

bool Places::Before(const Place& a, const Place& b) const {
  if (a.rank < 0 || b.rank < 0 || a.last < 0) return false;
  if (a.rank == b.rank) return a.last < b.first;
  if (!ordered_) return false;
  const uint32_t from = EntryFrom(a.rank, a.last), to = EntryFrom(b.rank, b.first);
  return from != graph::kNone && to != graph::kNone && lowered_.may().Precedes(from, to);
}

bool Places::SameStreams(const Finding& a, const Finding& b) const {
  const auto streams = [this](const Finding& finding) -> std::pair<int32_t, int32_t> {
    const Trace* trace = TraceOf(finding.rank);
    if (trace == nullptr || finding.begins < 0 || finding.event < 0) return {-1, -1};
    return std::minmax(
        {At(trace->events, finding.begins).stream, At(trace->events, finding.event).stream});
  };
  return a.rank == b.rank && streams(a).first >= 0 && streams(a) == streams(b);
}

bool Places::OnStreamOf(const Finding& a, const Finding& b) const {
  const Trace* trace = TraceOf(a.rank);
  if (trace == nullptr || a.rank != b.rank || a.event < 0 || a.begins >= 0) return false;
  const int32_t stream = At(trace->events, a.event).stream;
  const auto on = [&](int64_t event) {
    return event >= 0 && At(trace->events, event).stream == stream;
  };
  return stream >= 0 && (on(b.event) || on(b.begins));
}

std::set<int32_t> Places::BlocksOf(const Finding& finding) const {
  std::set<int32_t> blocks;
  const Trace* trace = TraceOf(finding.rank);
  if (trace == nullptr) return blocks;
  for (const int64_t index : {finding.begins, finding.event}) {
    if (index < 0 || index >= Length(trace->events)) continue;
    const Event& event = At(trace->events, index);
    if (event.alloc >= 0) blocks.insert(event.alloc);
    for (uint32_t r = event.ranges.begin; r < event.ranges.end; ++r)
      blocks.insert(trace->ranges[r].alloc);
    if (event.kind != EventKind::kGroupEnd) continue;
    for (int64_t i = index - 1; i >= 0; --i) {
      const Event& member = At(trace->events, i);
      if (member.kind == EventKind::kGroupBegin) break;
      for (uint32_t r = member.ranges.begin; r < member.ranges.end; ++r)
        blocks.insert(trace->ranges[r].alloc);
    }
  }
  return blocks;
}

bool Places::ShareBlocks(const Finding& a, const Finding& b) const {
  if (a.rank != b.rank) return false;
  const std::set<int32_t> blocks = BlocksOf(a), others = BlocksOf(b);
  return std::any_of(blocks.begin(), blocks.end(),
                     [&](int32_t block) { return others.contains(block); });
}

}  // namespace shardproof::cause
