#include "conformance/trace/clean_text.h"

#include <algorithm>

#include "conformance/common/safe_text.h"

namespace shardproof {

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
