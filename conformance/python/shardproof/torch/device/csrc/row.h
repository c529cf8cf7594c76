// One line of a trace, an event, as it is put together: `Row("wait").Number("ev", 3).Flag("f",
// true)`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace shardproof::device {

std::string JsonText(std::string_view text);  // in quotes, with escapes

class Row {
 public:
  explicit Row(const char* kind) : body_("\"e\":\"") { body_.append(kind).append("\""); }
  explicit Row(std::string body) : body_(std::move(body)) {}  // whole

  Row& Number(const char* key, int64_t value) { return Raw(key, std::to_string(value)); }
  Row& Flag(const char* key, bool value) { return Raw(key, value ? "true" : "false"); }
  Row& Text(const char* key, std::string_view value) { return Raw(key, JsonText(value)); }
  // A list, by the texts of its entries: `ranges` is `[1,2,0,64],[2,1,0,64]`.
  Row& List(const char* key, const std::string& entries) { return Raw(key, "[" + entries + "]"); }
  // Text as it stands: `,"for":"grad"`.
  Row& Append(const std::string& text) {
    body_.append(text);
    return *this;
  }

  const std::string& body() const { return body_; }

 private:
  Row& Raw(const char* key, const std::string& value) {
    body_.append(",\"").append(key).append("\":").append(value);
    return *this;
  }

  std::string body_;
};

}  // namespace shardproof::device
