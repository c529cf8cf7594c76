// trace_file.h: which files of a folder are traces, and of which rank?
#pragma once
#include <algorithm>
#include <string_view>

namespace shardproof {

constexpr std::string_view kTextEnding = ".jsonl", kPackedEnding = ".packed";

inline bool IsPackedFile(std::string_view name) { return name.ends_with(kPackedEnding); }

// The rank in "trace.NNNNN.jsonl" (five digits or more) or "trace.NNNNN.packed", or -1 for any
// other file.
inline int RankOfTraceFile(std::string_view name) {
  constexpr std::string_view kBefore = "trace.";
  const std::string_view after = IsPackedFile(name) ? kPackedEnding : kTextEnding;
  if (!name.starts_with(kBefore) || !name.ends_with(after) ||
      name.size() <= kBefore.size() + after.size())
    return -1;
  name.remove_prefix(kBefore.size());
  name.remove_suffix(after.size());
  const bool digits =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || name.size() < 5 || name.size() > 8) return -1;
  int rank = 0;
  for (char c : name) rank = rank * 10 + (c - '0');
  return rank;
}

}  // namespace shardproof
