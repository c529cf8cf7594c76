#include "conformance/report/perfetto/perfetto.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "conformance/checks/program/describe.h"
#include "conformance/common/at.h"
#include "conformance/common/safe_text.h"
#include "conformance/report/html/neighbourhood.h"
#include "conformance/trace/names.h"

namespace shardproof {

namespace {

using nlohmann::json;

constexpr int64_t kColumn = 10, kLength = 8;  // microseconds, as the viewer calls them

int32_t Track(const Event& event) { return event.stream + 1; }  // 0: the host

class Exporter {
 public:
  explicit Exporter(const std::vector<Trace>& traces)
      : traces_(traces), meetings_(MeetingsOf(traces)), columns_(Columns()) {}

  std::string Text() {
    for (const Trace& trace : traces_) {
      AddNames(trace);
      AddSlices(trace);
      AddRecords(trace);
      AddMemory(trace);
    }
    AddCollectives();
    const json all = {{"displayTimeUnit", "ns"},
                      {"otherData", {{"time", "order of issue: no times were recorded"}}},
                      {"traceEvents", rows_}};
    return all.dump(-1, ' ', true, json::error_handler_t::replace) + "\n";
  }

 private:
  std::vector<std::vector<int32_t>> Columns() const {
    std::vector<std::vector<const Meeting*>> ranks;
    for (size_t rank = 0; rank < traces_.size(); ++rank) {
      ranks.emplace_back(traces_[rank].events.size(), nullptr);
      for (const auto& [event, meeting] : meetings_[rank]) At(ranks.back(), event) = &meeting;
    }
    return ColumnsOf(ranks);
  }

  int64_t Time(int32_t rank, int64_t event) const {
    return kColumn * At(At(columns_, rank), event);
  }

  json& Row(const char* phase, int32_t rank, int32_t track, std::string name) {
    return rows_.emplace_back(
        json{{"ph", phase}, {"pid", rank}, {"tid", track}, {"name", std::move(name)}});
  }

  void AddNames(const Trace& trace) {
    Row("M", trace.rank, 0,
        "process_name")["args"] = {{"name", "rank " + std::to_string(trace.rank)}};
    Row("M", trace.rank, 0, "process_sort_index")["args"] = {{"sort_index", trace.rank}};
    Row("M", trace.rank, 0, "thread_name")["args"] = {{"name", "host"}};
    for (int32_t stream = 0; stream < Length(trace.streams); ++stream) {
      Row("M", trace.rank, stream + 1,
          "thread_name")["args"] = {{"name", VisibleLine(graph::StreamName(trace, stream))}};
    }
  }

  void AddSlices(const Trace& trace) {
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      const std::string kind(At(trace_names::kKinds, static_cast<int>(event.kind)));
      std::string name = graph::Describe(trace, event, {});
      if (name == "event") name = kind;  // it has no other
      if (event.kind == EventKind::kCallBegin || event.kind == EventKind::kCallEnd)
        name = kind + " " + std::string(trace.Text(event.text));
      json& row = Row("X", trace.rank, Track(event), VisibleLine(name));
      row["ts"] = Time(trace.rank, static_cast<int64_t>(i));
      row["dur"] = kLength;
      row["cat"] = kind;
      row["args"] = {{"event", i}};
      if (event.count > 0) row["args"]["count"] = event.count;
      if (event.microbatch >= 0) row["args"]["microbatch"] = event.microbatch;
    }
  }

  void AddFlow(const char* phase, int64_t flow, const char* name, int32_t rank, int64_t event) {
    json& row = Row(phase, rank, Track(At(At(traces_, rank).events, event)), name);
    row["cat"] = name;
    row["id"] = flow;
    row["ts"] = Time(rank, event) + kLength / 2;
    if (*phase != 's') row["bp"] = "e";
  }

  void AddRecords(const Trace& trace) {
    std::map<int32_t, int64_t> last;  // by event: its record
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      const auto index = static_cast<int64_t>(i);
      if (event.kind == EventKind::kRecord) last[event.event] = index;
      if (event.kind != EventKind::kWait && event.kind != EventKind::kEventSync) continue;
      const auto record = last.find(event.event);
      if (record == last.end()) continue;
      AddFlow("s", ++flows_, "event", trace.rank, record->second);
      AddFlow("f", flows_, "event", trace.rank, index);
    }
  }

  void AddCollectives() {
    std::map<Meeting, std::vector<std::pair<int32_t, int64_t>>> parts;
    for (int32_t rank = 0; rank < Length(meetings_); ++rank) {
      for (const auto& [event, meeting] : At(meetings_, rank))
        parts[meeting].emplace_back(rank, event);
    }
    for (const auto& [meeting, of] : parts) {
      if (of.size() < 2) continue;
      ++flows_;
      for (size_t i = 0; i < of.size(); ++i) {
        const char* phase = i == 0 ? "s" : i + 1 == of.size() ? "f" : "t";
        AddFlow(phase, flows_, "collective", of[i].first, of[i].second);
      }
    }
  }

  void AddMemory(const Trace& trace) {
    std::map<int32_t, std::pair<std::string, int64_t>> blocks;  // those that are there
    std::map<std::string, int64_t> bytes;                       // by purpose
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      if (event.kind == EventKind::kAlloc) {
        const bool known = event.purpose >= 0 &&
                           static_cast<size_t>(event.purpose) < trace_names::kPurposes.size();
        const std::string purpose(known ? At(trace_names::kPurposes, event.purpose)
                                        : std::string_view("other"));
        blocks[event.alloc] = {purpose, event.count};
        bytes[purpose] += event.count;
      } else if (GivesBack(event.kind) && blocks.contains(event.alloc)) {
        const auto& [purpose, count] = blocks[event.alloc];
        bytes[purpose] -= count;
        blocks.erase(event.alloc);
      } else {
        continue;
      }
      json& row = Row("C", trace.rank, 0, "memory, bytes");
      row["ts"] = Time(trace.rank, static_cast<int64_t>(i));
      row["args"] = bytes;
    }
  }

  const std::vector<Trace>& traces_;
  const std::vector<std::map<int64_t, Meeting>> meetings_;
  const std::vector<std::vector<int32_t>> columns_;
  json rows_ = json::array();
  int64_t flows_ = 0;
};

}  // namespace

std::string PerfettoJson(const std::vector<Trace>& traces) { return Exporter(traces).Text(); }

}  // namespace shardproof
