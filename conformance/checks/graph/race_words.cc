#include "conformance/checks/graph/race_words.h"

#include <algorithm>

#include "conformance/checks/program/describe.h"

namespace shardproof::graph {

namespace {

std::string Verb(const Program& program, uint32_t e, const Race& race) {
  const Entry& entry = program.entries[e];
  const EventKind kind = program.event(entry).kind;
  if (kind == EventKind::kAlloc) return "allocates";
  if (kind == EventKind::kFree) return "frees";
  uint8_t access = 0;
  for (const Range& range : RangesOf(program, entry)) {
    if (range.alloc == race.alloc && range.offset < race.offset + race.length &&
        race.offset < range.offset + range.length) {
      access = static_cast<uint8_t>(access | range.access);
    }
  }
  return access == kRead ? "reads" : access == kWrite ? "writes" : "reads and writes";
}

// "bytes [0, 4096) of block 12 (full parameters, module 3)"
std::string Bytes(const Program& program, const Trace& trace, const Race& race) {
  std::string text = "block " + std::to_string(race.alloc);
  int64_t bytes = 0;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kAlloc || event.alloc != race.alloc) continue;
    bytes = event.count;
    const std::string what = Describe(trace, event, program.names);
    const size_t of = what.find(" of block " + std::to_string(race.alloc) + " of ");
    const size_t stream = what.rfind(" (");
    if (of != std::string::npos) {
      const size_t from = what.find(" of ", of + 4) + 4;
      text += " (" + what.substr(from, stream == std::string::npos ? stream : stream - from) + ")";
    }
    break;
  }
  const int64_t end =
      bytes > 0 ? std::min(bytes, race.offset + race.length) : race.offset + race.length;
  if (end - race.offset > (int64_t{1} << 50)) return text;
  return "bytes [" + std::to_string(race.offset) + ", " + std::to_string(end) + ") of " + text;
}

// Pinned memory is allocated and freed when the host calls, whatever stream the call names.
bool InHostOrder(const Program& program, const Entry& entry) {
  const EventKind kind = program.event(entry).kind;
  return entry.stream < 0 && (kind == EventKind::kAlloc || kind == EventKind::kFree);
}

std::string NameOf(const Program& program, const Entry& entry) {
  if (!InHostOrder(program, entry)) return Describe(program, entry);
  Event event = program.event(entry);
  event.stream = -1;
  return Describe(program.trace(entry.rank), event, program.names) + " (host, pinned memory)";
}

std::string Advice(const Program& program, const Race& race) {
  const Entry& first = program.entries[race.first];
  const Entry& second = program.entries[race.second];
  if (second.stream < 0 && InHostOrder(program, second))
    return "Pinned memory is freed in host order: at once, not behind the work of the stream that "
           "the call names. Let the host wait for the former (event_sync or stream_sync) before it "
           "frees the block";
  if (second.stream < 0)
    return "Let the host wait for the former (event_sync or stream_sync) before it goes on";
  if (first.stream < 0) return "Issue the latter after the host is done with the bytes";
  return "Record an event after the former and let " +
         StreamName(program.trace(second.rank), second.stream) + " wait for it before the latter";
}

}  // namespace

RaceWords InWords(const Program& program, const Race& race) {
  const Entry& first = program.entries[race.first];
  const Entry& second = program.entries[race.second];
  const Trace& trace = program.trace(second.rank);
  RaceWords words;
  words.first = NameOf(program, first);
  words.second = NameOf(program, second);
  words.first_verb = Verb(program, race.first, race);
  words.second_verb = Verb(program, race.second, race);
  words.first_stream = first.stream < 0 ? "the host" : StreamName(trace, first.stream);
  words.waiting = second.stream < 0 ? "the host" : StreamName(trace, second.stream);
  words.bytes = Bytes(program, trace, race);
  words.expected = "ordered after " + words.first + " (event " + std::to_string(first.event) + ")";
  words.seen = "no order";
  words.advice = Advice(program, race);
  return words;
}

}  // namespace shardproof::graph
