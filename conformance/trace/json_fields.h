// json_fields.h: how is one value of a trace line read, or refused in words? Internal to the
// reader.
#pragma once
#include <simdjson.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "conformance/trace/event.h"
#include "conformance/trace/limits.h"

namespace shardproof {

// What a line is refused for; the reader adds file and line number.
struct LineError {
  std::string what;
};

// The characters of a key or name between its quotes, escapes not resolved. Valid as long as the
// line is.
inline std::string_view RawText(simdjson::ondemand::raw_json_string text) {
  const char* begin = text.raw();
  const char* end = begin;
  while (*end != '"') end += *end == '\\' ? 2 : 1;
  return {begin, static_cast<size_t>(end - begin)};
}

// A key of up to eight characters as one number, for switch.
constexpr uint64_t Key(std::string_view text) {
  uint64_t key = 0;
  if (text.size() > 8) return 0;
  for (char c : text) key = key << 8 | static_cast<unsigned char>(c);
  return key;
}

[[noreturn]] void ThrowOutside(std::string_view key, int64_t number, int64_t least, int64_t most);

// The value as an integer within [least, most].
inline int64_t ReadInt(simdjson::ondemand::value value, std::string_view key, int64_t least,
                       int64_t most) {
  const int64_t number = value.get_int64();
  if (number < least || number > most) ThrowOutside(key, number, least, most);
  return number;
}

// Up to 16 hexadecimal digits in quotes.
uint64_t ReadHex(simdjson::ondemand::value value, std::string_view key);

// A number, or one of the strings that JsonText::Value writes.
double ReadValue(simdjson::ondemand::value value);

}  // namespace shardproof
