// json_text.h: how is JSON appended to a string, fast and exactly?
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace shardproof {

class JsonText {
 public:
  std::string& text() { return text_; }

  JsonText& Raw(std::string_view text) {
    text_ += text;
    return *this;
  }
  // before, then the number: Int(",\"rank\":", 3).
  JsonText& Int(std::string_view before, int64_t value);
  void IntUnless(std::string_view before, int64_t value, int64_t otherwise) {
    if (value != otherwise) Int(before, value);
  }
  // A quoted string of 16 hexadecimal digits.
  void Hex(std::string_view before, uint64_t value);
  // The shortest decimal that reads back as the same double. What JSON has no number for is a
  // string: "nan", "inf", "-inf", or "0x" and the bits in 16 digits for every other NaN.
  void Value(double value);
  // Quoted and escaped, what acts or cannot be seen too (common/safe_text.h). Bytes that are no
  // UTF-8 become U+FFFD.
  JsonText& String(std::string_view value);

 private:
  void Digits(uint64_t value);

  std::string text_;
};

}  // namespace shardproof
