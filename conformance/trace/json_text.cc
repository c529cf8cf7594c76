#include "conformance/trace/json_text.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "conformance/common/safe_text.h"

namespace shardproof {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

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
    const auto byte = static_cast<unsigned char>(c);
    const size_t length = Utf8Length(value);
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (byte >= 0x20 && byte < 0x7F) {
      text_ += c;
    } else if (length == 0) {
      text_ += "\xEF\xBF\xBD";
    } else if (IsHazard(value.substr(0, length))) {
      text_ += JsonEscape(value.substr(0, length));
    } else {
      text_ += value.substr(0, length);
    }
    value.remove_prefix(length == 0 ? 1 : length);
  }
  text_ += '"';
  return *this;
}

}  // namespace shardproof
