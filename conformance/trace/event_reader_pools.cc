// What a line adds to the pools of the trace: strings, ranges, reads, numbers, values.
#include "conformance/trace/event_reader.h"

namespace shardproof {

namespace json = simdjson::ondemand;

namespace {

template <class Pool>
Slice SliceFrom(const Pool& pool, size_t begin) {
  if (pool.size() == begin) return {};
  return {static_cast<uint32_t>(begin), static_cast<uint32_t>(pool.size())};
}

}  // namespace

int32_t EventReader::Intern(std::string_view text) {
  const auto at = interned_.find(text);
  if (at != interned_.end()) return at->second;
  const auto index = static_cast<int32_t>(trace_.strings.size());
  trace_.strings.emplace_back(text);
  interned_.emplace(std::string(text), index);
  return index;
}

Slice EventReader::ReadRanges(json::array list) {
  const size_t begin = trace_.ranges.size();
  for (json::array row : list) {
    int64_t numbers[4];
    size_t n = 0;
    for (json::value value : row) {
      if (n == 4) throw LineError{"\"r\": a range is [allocation, access, offset, length]"};
      numbers[n] = ReadInt(value, "r", n == 0 ? -1 : 0, n == 0 ? kMaxId : n == 1 ? 3 : kMaxSize);
      ++n;
    }
    if (n != 4) throw LineError{"\"r\": a range is [allocation, access, offset, length]"};
    if (numbers[0] < 0 && numbers[3] != 0) throw LineError{"\"r\": bytes of no allocation"};
    trace_.ranges.push_back({static_cast<int32_t>(numbers[0]), static_cast<uint8_t>(numbers[1]),
                             numbers[2], numbers[3]});
  }
  return SliceFrom(trace_.ranges, begin);
}

Slice EventReader::ReadReads(json::array list) {
  const size_t begin = trace_.reads.size();
  for (json::array row : list) {
    ParamRead read;
    int n = 0;
    for (json::value value : row) {
      switch (n++) {
        case 0:
          read.param = static_cast<int32_t>(ReadInt(value, "rd", 0, kMaxId));
          break;
        case 1:
          read.count = ReadInt(value, "rd", 0, kMaxSize);
          break;
        case 2:
          read.digest = ReadHex(value, "rd");
          break;
        case 3:
          read.values = static_cast<int64_t>(trace_.values.size());
          if (ReadValues(value.get_array()) != read.count)
            throw LineError{"\"rd\": as many values as the count says"};
          break;
        default:
          throw LineError{
              "\"rd\": a read is [parameter, count, digest] or [parameter, count, digest, "
              "[values]]"};
      }
    }
    if (n < 3)
      throw LineError{
          "\"rd\": a read is [parameter, count, digest] or [parameter, count, digest, [values]]"};
    trace_.reads.push_back(read);
  }
  return SliceFrom(trace_.reads, begin);
}

Slice EventReader::ReadNumbers(json::array list, std::string_view key) {
  const size_t begin = trace_.numbers.size();
  for (json::value value : list) trace_.numbers.push_back(ReadInt(value, key, 0, kMaxSize));
  return SliceFrom(trace_.numbers, begin);
}

int64_t EventReader::ReadValues(json::array list) {
  const size_t begin = trace_.values.size();
  for (json::value value : list) trace_.values.push_back(ReadValue(value));
  return static_cast<int64_t>(trace_.values.size() - begin);
}

}  // namespace shardproof
