#include "conformance/trace/json_fields.h"

#include <bit>

namespace shardproof {
namespace {

// False unless digits are 1 to 16 of 0-9a-f.
bool ParseHex(std::string_view digits, uint64_t* number) {
  if (digits.empty() || digits.size() > 16) return false;
  *number = 0;
  for (char c : digits) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return false;
    *number = *number << 4 | static_cast<uint64_t>(digit);
  }
  return true;
}

}  // namespace

void ThrowOutside(std::string_view key, int64_t number, int64_t least, int64_t most) {
  throw LineError{"\"" + std::string(key) + "\":" + std::to_string(number) + " is not within " +
                  std::to_string(least) + ".." + std::to_string(most)};
}

uint64_t ReadHex(simdjson::ondemand::value value, std::string_view key) {
  uint64_t number = 0;
  if (!ParseHex(RawText(value.get_raw_json_string()), &number)) {
    throw LineError{"\"" + std::string(key) +
                    "\" must be 1 to 16 hexadecimal digits (0-9a-f) in quotes"};
  }
  return number;
}

double ReadValue(simdjson::ondemand::value value) {
  if (value.type() == simdjson::ondemand::json_type::number) return value.get_double();
  const std::string_view text = RawText(value.get_raw_json_string());
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  uint64_t bits = 0;
  if (text.size() != 18 || !text.starts_with("0x") || !ParseHex(text.substr(2), &bits)) {
    throw LineError{"\"" + std::string(text) +
                    "\" is no value: a number, \"nan\", \"inf\", \"-inf\", or 0x and 16 digits"};
  }
  return std::bit_cast<double>(bits);
}

}  // namespace shardproof
