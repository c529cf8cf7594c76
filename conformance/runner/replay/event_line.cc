#include "conformance/runner/replay/event_line.h"

#include <algorithm>

#include "conformance/checks/program/describe.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"
#include "conformance/trace/names.h"

namespace shardproof {

namespace {

graph::Names NamesOf(const Analysis& run) {
  const graph::Program* program = run.lowered().program();
  return program == nullptr ? graph::Names() : program->names;
}

// "gradients, layers.0.attn" of "allocation of block 1 of gradients, layers.0.attn (stream main)".
std::string LabelOf(const std::string& allocation, int32_t alloc) {
  const std::string named = "block " + std::to_string(alloc) + " of ";
  const size_t at = allocation.find(named);
  if (at == std::string::npos) return "";
  const size_t from = at + named.size();
  return allocation.substr(from, allocation.rfind(" (") - from);
}

// Events that are no device work, and that the checks have no words for.
std::string HostLine(const Trace& trace, const Event& event) {
  std::string text(At(trace_names::kKinds, static_cast<int>(event.kind)));
  if (event.text >= 0) text += " " + std::string(trace.Text(event.text));
  if (event.text2 >= 0) text += " " + std::string(trace.Text(event.text2));
  if (event.kind == EventKind::kKnob) return text + (event.flag ? "" : " (not set)");
  if (event.event >= 0) text += " " + std::to_string(event.event);
  if (event.stream >= 0) text += " (" + graph::StreamName(trace, event.stream) + ")";
  if (event.group >= 0 && static_cast<size_t>(event.group) < trace.groups.size())
    text += " on " + At(trace.groups, event.group).name;
  return text;
}

const char* Verb(uint8_t access) {
  return access == kRead ? "reads " : access == kWrite ? "writes " : "updates ";
}

// What it changes, then what it reads; bytes that it reads and writes once.
std::vector<Range> Touched(const Trace& trace, const Event& event) {
  std::vector<Range> touched;
  for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i) {
    const Range& range = trace.ranges[i];
    const auto same = std::find_if(touched.begin(), touched.end(), [&](const Range& other) {
      return other.alloc == range.alloc && other.offset == range.offset &&
             other.length == range.length;
    });
    if (same == touched.end()) {
      touched.push_back(range);
    } else {
      same->access = static_cast<uint8_t>(same->access | range.access);
    }
  }
  std::stable_partition(touched.begin(), touched.end(),
                        [](const Range& range) { return range.access != kRead; });
  return touched;
}

}  // namespace

EventLines::EventLines(const Analysis& run) : run_(run) {
  const graph::Names names = NamesOf(run);
  for (const Trace& trace : run.traces()) {
    std::map<int32_t, std::string>& blocks = blocks_.emplace_back();
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kAlloc) continue;
      const std::string label = LabelOf(graph::Describe(trace, event, names), event.alloc);
      if (!label.empty()) blocks[event.alloc] = " (" + label + ")";
    }
  }
}

std::string EventLines::Block(int32_t rank, int32_t alloc) const {
  const auto& blocks = At(blocks_, rank);
  const auto label = blocks.find(alloc);
  return "block " + std::to_string(alloc) + (label == blocks.end() ? "" : label->second);
}

std::string EventLines::Parameter(int32_t rank, const Event& event) const {
  if (run_.has_case() && event.instance < run_.n_instances() && event.id >= 0 &&
      event.id < run_.Facts(event.instance).n_params(rank))
    return run_.Facts(event.instance).Param(rank, event.id).name;
  return "parameter " + std::to_string(event.id);
}

std::string EventLines::Body(int32_t rank, int64_t index) const {
  const Trace& trace = run_.trace(rank);
  const Event& event = At(trace.events, index);
  switch (event.kind) {
    case EventKind::kPublish:
      return run_.Describe(rank, index) + " (" + graph::StreamName(trace, event.stream) + ")";
    case EventKind::kMark:
      return run_.Describe(rank, index);
    case EventKind::kCallBegin:
    case EventKind::kCallEnd:
      return std::string(event.kind == EventKind::kCallBegin ? "begin of " : "end of ") +
             run_.CallName(rank, event.instance, event.call);
    case EventKind::kInit:
      return "init of " + Parameter(rank, event) + " (" + graph::StreamName(trace, event.stream) +
             ")";
    case EventKind::kKnob:
    case EventKind::kGroupAsk:
    case EventKind::kStreamCreate:
    case EventKind::kStreamDestroy:
    case EventKind::kEventCreate:
    case EventKind::kEventDestroy:
    case EventKind::kGroupBegin:
    case EventKind::kRefused:
    case EventKind::kExplain:
    case EventKind::kNoMemory:
      return HostLine(trace, event);
    case EventKind::kWait:
      return graph::Describe(trace, event, {}) +
             (event.flag ? "" : ", of which there is no record");
    default:
      return graph::Describe(trace, event, NamesOf(run_));
  }
}

std::string EventLines::Text(int32_t rank, int64_t index, size_t ranges) const {
  const Trace& trace = run_.trace(rank);
  const Event& event = At(trace.events, index);
  std::string text = Body(rank, index);
  if (event.kind == EventKind::kCollective && event.count > 0 && IsDtype(event.dtype))
    text += ", " + DtypeName(event.dtype) + " x " + std::to_string(event.count);
  if (event.kind == EventKind::kAlloc) text += ", " + std::to_string(event.count) + " bytes";
  if (GivesBack(event.kind)) {
    const std::string block = "block " + std::to_string(event.alloc);
    const size_t at = text.find(block);
    if (at != std::string::npos) text.replace(at, block.size(), Block(rank, event.alloc));
  }
  const std::vector<Range> touched = Touched(trace, event);
  for (size_t i = 0; i < touched.size(); ++i) {
    if (i == ranges) return text + ", and " + std::to_string(touched.size() - i) + " more";
    const Range& range = touched[i];
    text += (i == 0 ? "; " : ", ") + std::string(Verb(range.access)) + Block(rank, range.alloc) +
            " [" + std::to_string(range.offset) + ", " +
            std::to_string(range.offset + range.length) + ")";
  }
  return text;
}

}  // namespace shardproof
