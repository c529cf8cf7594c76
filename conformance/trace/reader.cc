#include "conformance/trace/reader.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "conformance/trace/event_reader.h"
#include "conformance/trace/names.h"
#include "conformance/trace/open_trace.h"
#include "conformance/trace/trace_lines.h"

namespace shardproof {
namespace {

namespace json = simdjson::ondemand;
constexpr trace_names::NameIndex kEnds(trace_names::kEnds);

std::string InWords(simdjson::error_code code) {
  switch (code) {
    case simdjson::INCORRECT_TYPE:
      return "a value is not of the type that its key needs";
    case simdjson::NUMBER_OUT_OF_RANGE:
      return "a number is out of range";
    default:
      return std::string("not valid JSON (") + simdjson::error_message(code) + ")";
  }
}

class TextCursor : public TraceCursor {
 public:
  TextCursor(std::string_view text, std::string source_name, std::unique_ptr<MappedFile> file)
      : file_(std::move(file)),
        source_name_(std::move(source_name)),
        rest_(text),
        gate_(trace_),
        events_(trace_, gate_) {}

  void Begin() override {
    Guarded([&] {
      while (!has_header_ && !rest_.empty()) ReadNextLine();
      return has_header_ || Advance();
    });
  }
  bool Next() override {
    return Guarded([&] { return Advance(); });
  }

  // For as many rows as the text has, about.
  void ReserveEvents() {
    constexpr size_t kSampleBytes = 1 << 16;
    const std::string_view sample = rest_.substr(0, kSampleBytes);
    const auto lines = static_cast<size_t>(std::count(sample.begin(), sample.end(), '\n'));
    if (!sample.empty()) trace_.events.reserve(lines * (rest_.size() / sample.size() + 1));
  }

 private:
  template <typename Read>
  bool Guarded(Read&& read) {
    try {
      return read();
    } catch (const LineError& error) {
      throw TraceError(source_name_, line_number_, error.what);
    } catch (const simdjson::simdjson_error& error) {
      throw TraceError(source_name_, line_number_, InWords(error.error()));
    }
  }

  bool Advance() {
    const int64_t before = gate_.events();
    while (!rest_.empty()) {
      ReadNextLine();
      if (gate_.events() == before) continue;
      if (file_ != nullptr) file_->Done(file_->bytes().size() - rest_.size());
      return true;
    }
    ++line_number_;
    if (!has_header_)
      throw LineError{"the file is empty: a trace begins with {\"shardproof_trace\":1,..}"};
    if (!has_footer_) {
      throw LineError{
          "the trace ends without a footer {\"end\":..}: it was cut off, or who wrote it died"};
    }
    return false;
  }

  void ReadNextLine() {
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    ++line_number_;
    ReadLine(rest_.substr(0, end), rest_.size() - end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
  }

  // after: bytes that follow the line in the text, and may be looked at by the parser.
  void ReadLine(std::string_view line, size_t after) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    if (has_footer_) throw LineError{"a line after the footer: two traces in one file"};
    if (after < simdjson::SIMDJSON_PADDING) {
      padded_.assign(line);
      padded_.append(simdjson::SIMDJSON_PADDING, ' ');
      line = std::string_view(padded_).substr(0, line.size());
      after = simdjson::SIMDJSON_PADDING;
    }
    json::document document = parser_.iterate(
        simdjson::padded_string_view(line.data(), line.size(), line.size() + after));
    json::object object = document.get_object();
    Dispatch(FirstKey(line), object);
    if (document.current_location().error() != simdjson::OUT_OF_BOUNDS)
      throw LineError{"more than one object on the line"};
  }

  void Dispatch(std::string_view key, json::object object) {
    if (key == "shardproof_trace") return ReadHeader(object);
    if (!has_header_) throw LineError{"a trace begins with {\"shardproof_trace\":1,..}"};
    if (IsEventKey(key)) return events_.Read(object);
    if (key == "group") return ReadGroup(object);
    if (key == "stream") return ReadStream(object);
    if (key == "end") return ReadFooter(object);
    throw LineError{
        "the first key must be \"i\" or \"e\" (an event), \"group\", \"stream\" or \"end\", not "
        "\"" +
        std::string(key) + "\""};
  }

  void ReadHeader(json::object object) {
    if (has_header_) {
      throw LineError{"a second header: the lines of two traces are mixed (so far: rank " +
                      std::to_string(trace_.rank) + " of case \"" + trace_.case_id + "\")"};
    }
    int64_t rank = -1, world = -1;
    for (json::field field : object) {
      const std::string_view name = RawText(field.key());
      json::value value = field.value();
      if (name == "shardproof_trace") {
        const int64_t version = value.get_int64();
        if (version != 1)
          throw LineError{"format version " + std::to_string(version) + "; this reader knows 1"};
      } else if (name == "rank") {
        rank = ReadInt(value, "rank", 0, kMaxWorld);
      } else if (name == "world") {
        world = ReadInt(value, "world", 1, kMaxWorld);
      } else if (name == "case") {
        trace_.case_id = std::string(std::string_view(value.get_string()));
      } else if (name == "provides") {
        for (json::value item : value.get_array()) ReadProvides(item.get_string());
      } else if (name == "updates") {
        ReadUpdates(value.get_string());
      } else {
        throw LineError{"unknown key \"" + std::string(name) + "\" in the header"};
      }
    }
    if (world < 0) throw LineError{"the header needs \"world\""};
    if (rank < 0 || rank >= world)
      throw LineError{"the header needs \"rank\" within 0.." + std::to_string(world - 1)};
    trace_.rank = static_cast<int32_t>(rank);
    trace_.world = static_cast<int32_t>(world);
    has_header_ = true;
  }

  void ReadUpdates(std::string_view how) {
    if (how != "bounded")
      throw LineError{"\"updates\" may be \"bounded\", and is \"" + std::string(how) + "\""};
    trace_.bounded_updates = true;
  }

  void ReadProvides(std::string_view name) {
    for (const trace_names::ProvidesField& field : trace_names::kProvides) {
      if (field.name != name) continue;
      trace_.provides.*field.field = true;
      return;
    }
    throw LineError{"\"provides\" knows no \"" + std::string(name) + "\""};
  }

  void ReadGroup(json::object object) {
    GroupInfo group;
    const auto due = static_cast<int64_t>(trace_.groups.size());
    for (json::field field : object) {
      const std::string_view name = RawText(field.key());
      json::value value = field.value();
      if (name == "group") {
        if (value.get_int64() != due)
          throw LineError{"groups are defined in order: group " + std::to_string(due) + " is due"};
      } else if (name == "comm") {
        group.comm = std::string(std::string_view(value.get_string()));
      } else if (name == "name") {
        group.name = std::string(std::string_view(value.get_string()));
      } else if (name == "n") {
        group.instance = static_cast<int32_t>(ReadInt(value, "n", 0, 65535));
      } else if (name == "ranks") {
        for (json::value rank : value.get_array()) {
          group.world_ranks.push_back(
              static_cast<int32_t>(ReadInt(rank, "ranks", 0, trace_.world - 1)));
        }
      } else {
        throw LineError{"unknown key \"" + std::string(name) + "\" in a group"};
      }
    }
    gate_.AddGroup(std::move(group));
  }

  void ReadStream(json::object object) {
    const auto due = static_cast<int64_t>(trace_.streams.size());
    std::string stream_name;
    for (json::field field : object) {
      const std::string_view name = RawText(field.key());
      json::value value = field.value();
      if (name == "stream") {
        if (value.get_int64() != due)
          throw LineError{"streams are defined in order: stream " + std::to_string(due) +
                          " is due"};
      } else if (name == "name") {
        stream_name = std::string(std::string_view(value.get_string()));
      } else {
        throw LineError{"unknown key \"" + std::string(name) + "\" in a stream"};
      }
    }
    trace_.streams.push_back(std::move(stream_name));
  }

  void ReadFooter(json::object object) {
    std::optional<int> end;
    for (json::field field : object) {
      const std::string_view name = RawText(field.key());
      json::value value = field.value();
      if (name == "end") {
        const int64_t count = value.get_int64();
        const int64_t seen = gate_.events();
        if (count != seen) {
          throw LineError{"the footer counts " + std::to_string(count) + " events, but " +
                          std::to_string(seen) +
                          " were read: lines are missing, or of another trace"};
        }
      } else if (name == "status") {
        end = kEnds.Find(RawText(value.get_raw_json_string()));
      } else if (name == "reason") {
        trace_.end_reason = std::string(std::string_view(value.get_string()));
      } else {
        throw LineError{"unknown key \"" + std::string(name) + "\" in the footer"};
      }
    }
    if (end.value_or(-1) < 0)
      throw LineError{"the footer needs \"status\": complete, aborted or died"};
    trace_.end = static_cast<TraceEnd>(*end);
    gate_.End(trace_.end);
    has_footer_ = true;
  }

  const std::unique_ptr<MappedFile> file_;  // of the text; null: somebody else holds it
  const std::string source_name_;
  std::string_view rest_;
  int64_t line_number_ = 0;
  bool has_header_ = false, has_footer_ = false;
  RowGate gate_;
  EventReader events_;
  json::parser parser_;
  std::string padded_;
};

}  // namespace

Trace ReadTrace(std::string_view text, std::string_view source_name) {
  TextCursor cursor(text, std::string(source_name), nullptr);
  cursor.ReserveEvents();
  while (cursor.Next()) {
  }
  return std::move(cursor.trace());
}

std::unique_ptr<TraceCursor> OpenText(std::unique_ptr<MappedFile> file, std::string source_name) {
  const std::string_view text = file->bytes();
  return std::make_unique<TextCursor>(text, std::move(source_name), std::move(file));
}

}  // namespace shardproof
