#include "conformance/trace/writer.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <ostream>
#include <stdexcept>
#include <string_view>

#include "conformance/trace/json_text.h"
#include "conformance/trace/names.h"
#include "conformance/trace/row_bounds.h"
#include "conformance/trace/trace_file.h"

namespace shardproof {
namespace {

namespace names = trace_names;

class Writer : private JsonText {
 public:
  explicit Writer(const Trace& trace) : trace_(trace) {}

  using JsonText::text;

  void Header() {
    Raw("{\"shardproof_trace\":1");
    Int(",\"rank\":", trace_.rank);
    Int(",\"world\":", trace_.world);
    Raw(",\"case\":");
    String(trace_.case_id);
    Raw(",\"provides\":[");
    bool first = true;
    for (const names::ProvidesField& field : names::kProvides) {
      if (!(trace_.provides.*field.field)) continue;
      if (!first) Raw(",");
      first = false;
      String(field.name);
    }
    Raw(trace_.bounded_updates ? "],\"updates\":\"bounded\"}\n" : "]}\n");
    for (size_t i = 0; i < trace_.groups.size(); ++i) Group(i);
    for (size_t i = 0; i < trace_.streams.size(); ++i) {
      Int("{\"stream\":", static_cast<int64_t>(i));
      Raw(",\"name\":");
      String(trace_.streams[i]);
      Raw("}\n");
    }
  }

  void Footer() {
    Int("{\"end\":", static_cast<int64_t>(trace_.events.size()));
    Raw(",\"status\":");
    String(names::kEnds[static_cast<size_t>(trace_.end)]);
    if (!trace_.end_reason.empty()) {
      Raw(",\"reason\":");
      String(trace_.end_reason);
    }
    Raw("}\n");
  }

  void WriteEvent(size_t index) {
    const Event& event = trace_.events[index];
    CheckBounds(trace_, index);
    Int("{\"i\":", static_cast<int64_t>(index));
    Raw(",\"e\":\"");
    Raw(names::kKinds[static_cast<size_t>(event.kind)]);
    Raw("\"");
    Scalars(event);
    Lists(event);
    Raw("}\n");
  }

 private:
  void Group(size_t index) {
    const GroupInfo& group = trace_.groups[index];
    Int("{\"group\":", static_cast<int64_t>(index));
    Raw(",\"comm\":");
    String(group.comm);
    Raw(",\"name\":");
    String(group.name);
    if (group.instance != 0) Int(",\"n\":", group.instance);
    Raw(",\"ranks\":[");
    for (size_t i = 0; i < group.world_ranks.size(); ++i)
      Int(i == 0 ? "" : ",", group.world_ranks[i]);
    Raw("]}\n");
  }

  void Scalars(const Event& event) {
    IntUnless(",\"t\":", event.thread, 0);
    IntUnless(",\"n\":", event.instance, 0);
    IntUnless(",\"c\":", event.call, -1);
    IntUnless(",\"s\":", event.stream, -1);
    IntUnless(",\"ev\":", event.event, -1);
    IntUnless(",\"g\":", event.group, -1);
    IntUnless(",\"pg\":", event.parent, -1);
    IntUnless(",\"a\":", event.alloc, -1);
    if (event.collective >= names::kFirstForeignCollective) {
      Enum(",\"op\":", event.collective - names::kFirstForeignCollective,
           names::kForeignCollectives, event.collective);
    } else if (event.collective != 0) {
      Enum(",\"op\":", event.collective, names::kCollectives, event.collective);
    }
    if (event.dtype != 0) Enum(",\"ty\":", event.dtype, names::kDtypes, event.dtype);
    if (event.reduction != 0)
      Enum(",\"red\":", event.reduction, names::kReductions, event.reduction);
    IntUnless(",\"p\":", event.peer, -1);
    IntUnless(",\"id\":", event.id, -1);
    if (event.phase != 0) Enum(",\"ph\":", event.phase, names::kPhases, event.phase);
    if (event.result != 0) Enum(",\"res\":", event.result, names::kResults, event.result);
    if (event.status != 0) Enum(",\"st\":", event.status, names::kStatuses, event.status);
    if (event.breaks != 0) Enum(",\"breaks\":", event.breaks, names::kBreaks, event.breaks);
    if (event.flag) Raw(",\"f\":true");
    IntUnless(",\"rq\":", event.request, -1);
    if (event.purpose != 0) Enum(",\"for\":", event.purpose, names::kPurposes, event.purpose);
    IntUnless(",\"m\":", event.module, -1);
    IntUnless(",\"mb\":", event.microbatch, -1);
    IntUnless(",\"sm\":", event.sample, -1);
    IntUnless(",\"o\":", event.offset, 0);
    IntUnless(",\"k\":", event.count, 0);
    if (event.digest != 0) Hex(",\"d\":", event.digest);
  }

  void Lists(const Event& event) {
    if (event.text >= 0) {
      Raw(",\"x\":");
      String(trace_.Text(event.text));
    }
    if (event.text2 >= 0) {
      Raw(",\"y\":");
      String(trace_.Text(event.text2));
    }
    if (event.place >= 0) {
      Raw(",\"at\":");
      String(trace_.Text(event.place));
    }
    if (!event.ranges.empty()) {
      Raw(",\"r\":[");
      for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i) {
        const Range& range = trace_.ranges[i];
        Int(i == event.ranges.begin ? "[" : ",[", range.alloc);
        Int(",", range.access);
        Int(",", range.offset);
        Int(",", range.length);
        Raw("]");
      }
      Raw("]");
    }
    if (!event.reads.empty()) {
      Raw(",\"rd\":[");
      for (uint32_t i = event.reads.begin; i < event.reads.end; ++i) {
        const ParamRead& read = trace_.reads[i];
        Int(i == event.reads.begin ? "[" : ",[", read.param);
        Int(",", read.count);
        Hex(",", read.digest);
        if (read.values >= 0) Values(",[", read.values, read.count);
        Raw("]");
      }
      Raw("]");
    }
    Numbers(",\"ranks\":[", event.ranks);
    Numbers(",\"sc\":[", event.send_counts);
    Numbers(",\"rc\":[", event.recv_counts);
    if (event.values >= 0) Values(",\"v\":[", event.values, event.count);
  }

  // A value without a name is written as a number, and read back.
  template <size_t n>
  void Enum(std::string_view before, int value, const names::Names<n>& table, int number) {
    if (value < 0 || static_cast<size_t>(value) >= n || table[static_cast<size_t>(value)].empty()) {
      Int(before, number);
      return;
    }
    Raw(before);
    Raw("\"");
    Raw(table[static_cast<size_t>(value)]);
    Raw("\"");
  }

  void Numbers(std::string_view before, Slice slice) {
    if (slice.empty()) return;
    Raw(before);
    for (uint32_t i = slice.begin; i < slice.end; ++i)
      Int(i == slice.begin ? "" : ",", trace_.numbers[i]);
    Raw("]");
  }

  void Values(std::string_view before, int64_t first, int64_t count) {
    Raw(before);
    for (int64_t i = 0; i < count; ++i) {
      if (i > 0) Raw(",");
      Value(trace_.values[static_cast<size_t>(first + i)]);
    }
    Raw("]");
  }

  const Trace& trace_;
};

}  // namespace

void WriteTrace(const Trace& trace, std::ostream& out) {
  constexpr size_t kFlushBytes = 1 << 20;
  Writer writer(trace);
  const auto flush = [&] {
    out.write(writer.text().data(), static_cast<std::streamsize>(writer.text().size()));
    writer.text().clear();
  };
  writer.Header();
  for (size_t i = 0; i < trace.events.size(); ++i) {
    writer.WriteEvent(i);
    if (writer.text().size() >= kFlushBytes) flush();
  }
  writer.Footer();
  flush();
}

std::string TraceToText(const Trace& trace) {
  Writer writer(trace);
  writer.Header();
  for (size_t i = 0; i < trace.events.size(); ++i) writer.WriteEvent(i);
  writer.Footer();
  return std::move(writer.text());
}

std::string TraceFileName(int rank) {
  std::string number = std::to_string(rank);
  if (number.size() < 5) number.insert(0, 5 - number.size(), '0');
  return "trace." + number + ".jsonl";
}

std::string TraceFolderName(std::string_view case_id) {
  constexpr size_t kMostName = 255, kKept = 200;
  if (case_id.size() <= kMostName) return std::string(case_id);
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (const char letter : case_id) hash = (hash ^ static_cast<uint8_t>(letter)) * 0x100000001B3u;
  char ending[18];
  std::snprintf(ending, sizeof ending, "~%016llx", static_cast<unsigned long long>(hash));
  std::string name(case_id.substr(0, kKept));
  name += ending;
  return name;
}

void WriteTraceFolder(const std::vector<Trace>& traces, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (RankOfTraceFile(entry.path().filename().string()) >= 0)
      std::filesystem::remove(entry.path());
  }
  for (const Trace& trace : traces) {
    const std::filesystem::path path = folder / TraceFileName(trace.rank);
    std::ofstream file(path, std::ios::binary);
    if (file) WriteTrace(trace, file);
    file.close();
    if (!file)
      throw std::runtime_error("cannot write " + path.string() + ": " + std::strerror(errno));
  }
}

}  // namespace shardproof
