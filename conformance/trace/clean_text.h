// clean_text.h: what of an engine's text can stand in a trace?
//
// Names and explanations are an engine's own bytes. A trace is UTF-8, so what is none becomes
// U+FFFD, and a text that is too long is cut, when it is recorded: what is in memory is what is
// read back from disk.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace shardproof {

constexpr size_t kMaxTextBytes = 4096;

// Valid UTF-8. Of more than kMaxTextBytes only the beginning, and how many there were.
std::string CleanText(std::string_view text);

}  // namespace shardproof
