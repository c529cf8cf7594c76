// packed_fields.h: what does a packed event hold? Internal to pack_trace.cc and unpack_trace.cc.
//
//   trace   version, world, rank, case, provides (a bit for each row of kProvides), groups,
//           streams, strings, number of events, end, reason, events
//   event   kind, the bits of the keys that it has (event_keys.h), the numbers below, then x, y,
//   at,
//           d, r, rd, ranks, sc, rc, v
//
// A number is zigzag in groups of seven bits, least first, each but the last with bit 7 set. A text
// or a list is its size and its items; a digest or a value is 8 bytes as in memory.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "conformance/trace/event.h"
#include "conformance/trace/event_keys.h"
#include "conformance/trace/limits.h"
#include "conformance/trace/names.h"

namespace shardproof {

constexpr int64_t kPackedVersion = 2;

// The first line of a file. It tells all lists of names and keys whose places packed numbers are:
// where one of them changed, the file is refused.
inline std::string FirstLineOfPackedFile() {
  uint64_t sum = 14695981039346656037u + static_cast<uint64_t>(kPackedVersion);  // FNV-1a
  const auto add = [&sum](const auto& names) {
    for (const std::string_view name : names) {
      for (const char c : name) sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211u;
      sum = (sum ^ 0xFF) * 1099511628211u;
    }
    sum = (sum ^ 0xFE) * 1099511628211u;
  };
  add(kEventKeys), add(kBreakable);
  add(trace_names::kKinds), add(trace_names::kDtypes), add(trace_names::kCollectives);
  add(trace_names::kForeignCollectives), add(trace_names::kReductions), add(trace_names::kPhases);
  add(trace_names::kResults), add(trace_names::kStatuses), add(trace_names::kPurposes);
  add(trace_names::kEnds);
  for (const trace_names::ProvidesField& field : trace_names::kProvides)
    add(std::array<std::string_view, 1>{field.name});
  return "shardproof packed trace " + std::to_string(sum) + "\n";
}

// Calls number(bit, field, absent, least, most) for each number of an event: absent is what the
// field is in an event without that key, least and most what a reader accepts.
template <class E, class F>
void ForEachNumber(E& event, F&& number) {
  const auto id = [&](uint64_t bit, auto& field) { number(bit, field, -1, -1, kMaxId); };
  const auto byte = [&](uint64_t bit, auto& field) { number(bit, field, 0, 0, 255); };
  number(Bit("t"), event.thread, 0, 0, 65535);
  number(Bit("n"), event.instance, 0, 0, 65535);
  id(Bit("c"), event.call);
  id(Bit("s"), event.stream);
  id(Bit("ev"), event.event);
  id(Bit("g"), event.group);
  id(Bit("pg"), event.parent);
  id(Bit("a"), event.alloc);
  byte(Bit("op"), event.collective);
  byte(Bit("ty"), event.dtype);
  byte(Bit("red"), event.reduction);
  id(Bit("p"), event.peer);
  number(Bit("id"), event.id, -1, -kMaxInt32 - 1, kMaxInt32);
  byte(Bit("ph"), event.phase);
  byte(Bit("res"), event.result);
  byte(Bit("st"), event.status);
  id(Bit("rq"), event.request);
  number(Bit("for"), event.purpose, 0, 0, kMaxInt32);
  number(Bit("m"), event.module, -1, -1, kMaxInt32);
  number(Bit("mb"), event.microbatch, -1, -1, kMaxInt32);
  number(Bit("sm"), event.sample, -1, kMinInt64, kMaxInt64);
  number(Bit("o"), event.offset, 0, 0, kMaxSize);
  number(Bit("k"), event.count, 0, 0, kMaxSize);
  number(Bit("breaks"), event.breaks, 0, 0, static_cast<int64_t>(kBreakable.size()) - 1);
}

}  // namespace shardproof
