// trace_file.h: which files of a folder are traces, and of which rank?
#pragma once
#include <algorithm>
#include <string_view>

namespace shardproof {

// The rank in "trace.NNNNN.jsonl" (five digits or more), or -1 for any other file.
inline int RankOfTraceFile(std::string_view name) {
  constexpr std::string_view kBefore = "trace.", kAfter = ".jsonl";
  if (!name.starts_with(kBefore) || !name.ends_with(kAfter) ||
      name.size() <= kBefore.size() + kAfter.size())
    return -1;
  name.remove_prefix(kBefore.size());
  name.remove_suffix(kAfter.size());
  const bool digits =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || name.size() < 5 || name.size() > 8) return -1;
  int rank = 0;
  for (char c : name) rank = rank * 10 + (c - '0');
  return rank;
}

}  // namespace shardproof
