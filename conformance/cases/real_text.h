// real_text.h: how is a real number written so that reading it gives the same bits?
#pragma once
#include <charconv>
#include <string>

namespace shardproof {

// The shortest decimal text that reads back as the same double, without a '+'.
inline std::string RealText(double value) {
  char buffer[32];
  const std::to_chars_result end = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string text(buffer, end.ptr);
  if (const size_t plus = text.find('+'); plus != std::string::npos) text.erase(plus, 1);
  return text;
}

// False when the text is not one whole number in decimal notation.
inline bool ReadReal(const std::string& text, double* value) {
  const char* end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, *value);
  return !text.empty() && read.ec == std::errc() && read.ptr == end;
}

}  // namespace shardproof
