#include "conformance/trace/json_text.h"

#include <bit>
#include <charconv>
#include <cmath>

namespace shardproof {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

// Bytes of valid UTF-8 at the start of text (1 to 4), or 0.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xED && byte(1) >= 0xA0;
  const bool too_high = lead == 0xF4 && byte(1) >= 0x90;
  return overlong || surrogate || too_high ? 0 : length;
}

}  // namespace

JsonText& JsonText::Int(std::string_view before, int64_t value) {
  text_ += before;
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  text_.append(digits, end.ptr);
  return *this;
}

void JsonText::Digits(uint64_t value) {
  for (int shift = 60; shift >= 0; shift -= 4) text_ += kHex[(value >> shift) & 15];
}

void JsonText::Hex(std::string_view before, uint64_t value) {
  text_ += before;
  text_ += '"';
  Digits(value);
  text_ += '"';
}

void JsonText::Value(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  if (std::isfinite(value)) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, value);
    text_.append(digits, end.ptr);
  } else if (std::isinf(value)) {
    text_ += value > 0 ? "\"inf\"" : "\"-inf\"";
  } else if (bits == 0x7FF8000000000000u) {
    text_ += "\"nan\"";
  } else {
    text_ += "\"0x";
    Digits(bits);
    text_ += '"';
  }
}

JsonText& JsonText::String(std::string_view value) {
  text_ += '"';
  while (!value.empty()) {
    const char c = value.front();
    const size_t length = Utf8Length(value);
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      text_ += "\\u00";
      text_ += kHex[static_cast<size_t>(c) >> 4];
      text_ += kHex[static_cast<size_t>(c) & 15];
    } else if (length == 0) {
      text_ += "\xEF\xBF\xBD";
    } else {
      text_ += value.substr(0, length);
    }
    value.remove_prefix(length == 0 ? 1 : length);
  }
  text_ += '"';
  return *this;
}

}  // namespace shardproof
