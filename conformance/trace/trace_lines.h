// trace_lines.h: what is each line of a trace file, and on which one is an event?
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace shardproof {

// The line's first key, which says what it is; empty if it is no object.
std::string_view FirstKey(std::string_view line);
inline bool IsEventKey(std::string_view key) { return key == "i" || key == "e"; }

// The line, from 1, of the event with this index; 0: there are not so many.
int64_t LineOfEvent(std::string_view text, int64_t event);

// Throws TraceError.
std::string ReadTraceText(const std::filesystem::path& path);

}  // namespace shardproof
