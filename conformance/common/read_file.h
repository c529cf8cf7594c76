// read_file.h: what is in a file?
#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace shardproof {

// All bytes of `path`; nothing, and errno says why, if it cannot be read: no such file, a folder,
// or a file of /proc whose process has ended since it was opened (ESRCH). Never throws for these,
// as a std::istreambuf_iterator does. Sizes are not believed: those of /proc are 0.
std::optional<std::string> ReadFile(const std::filesystem::path& path);

// The same into a text whose memory is used again; false, and errno says why.
bool ReadFileInto(const std::filesystem::path& path, std::string& text);

}  // namespace shardproof
