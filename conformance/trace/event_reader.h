// event_reader.h: how does one event line become a row? Internal to the reader.
#pragma once
#include <simdjson.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "conformance/trace/event.h"
#include "conformance/trace/json_fields.h"
#include "conformance/trace/row_gate.h"

namespace shardproof {

// Appends events to a trace whose groups and streams are entered by the reader as their lines come.
class EventReader {
 public:
  EventReader(Trace& trace, RowGate& gate) : trace_(trace), gate_(gate) {}

  void Read(simdjson::ondemand::object line);

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  void ReadKind(simdjson::ondemand::value value);
  // These answer whether the key is one of theirs.
  bool ReadId(uint64_t key, simdjson::ondemand::value value);
  bool ReadNumber(uint64_t key, simdjson::ondemand::value value);
  bool ReadEnum(uint64_t key, simdjson::ondemand::value value);
  bool ReadText(uint64_t key, simdjson::ondemand::value value);
  bool ReadOther(uint64_t key, simdjson::ondemand::value value);
  void Once(uint64_t bit, std::string_view key);
  int32_t Id(simdjson::ondemand::value value, std::string_view key);
  int32_t Intern(std::string_view text);
  Slice ReadRanges(simdjson::ondemand::array list);
  Slice ReadReads(simdjson::ondemand::array list);
  Slice ReadNumbers(simdjson::ondemand::array list, std::string_view key);
  // Appends to the pool and returns how many.
  int64_t ReadValues(simdjson::ondemand::array list);

  Trace& trace_;
  RowGate& gate_;
  Event event_;
  uint64_t seen_ = 0;  // which keys the line had
  int64_t values_read_ = 0;
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> interned_;
};

}  // namespace shardproof
