#include "conformance/trace/clean_text.h"

#include <algorithm>

namespace shardproof {

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

std::string CleanText(std::string_view text) {
  std::string clean;
  clean.reserve(std::min(text.size(), kMaxTextBytes));
  std::string_view rest = text;
  while (!rest.empty() && clean.size() < kMaxTextBytes) {
    const size_t length = Utf8Length(rest);
    clean += length == 0 ? std::string_view("\xEF\xBF\xBD") : rest.substr(0, length);
    rest.remove_prefix(std::max<size_t>(length, 1));
  }
  if (!rest.empty()) clean += "... (" + std::to_string(text.size()) + " bytes)";
  return clean;
}

}  // namespace shardproof
