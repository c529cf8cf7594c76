#include "conformance/trace/trace_lines.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "conformance/common/read_file.h"
#include "conformance/trace/reader.h"
#include "conformance/trace/trace_file.h"

namespace shardproof {

std::string_view FirstKey(std::string_view line) {
  size_t at = 0;
  const auto skip = [&] { at = std::min(line.find_first_not_of(" \t\r", at), line.size()); };
  skip();
  if (at == line.size() || line[at] != '{') return {};
  ++at;
  skip();
  if (at == line.size() || line[at] != '"') return {};
  const size_t end = line.find('"', at + 1);
  return end == std::string_view::npos ? std::string_view() : line.substr(at + 1, end - at - 1);
}

int64_t LineOfEvent(std::string_view text, int64_t event) {
  for (int64_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (IsEventKey(FirstKey(text.substr(0, end))) && event-- == 0) return line;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return 0;
}

std::string ReadTraceText(const std::filesystem::path& path) {
  std::optional<std::string> text = ReadFile(path);
  if (!text)
    throw TraceError(path.string(), 0, std::string("cannot be read: ") + std::strerror(errno));
  return *std::move(text);
}

TraceError::TraceError(std::string_view source, int64_t line, const std::string& what)
    : std::runtime_error(std::string(source) + ":" +
                         (line > 0 ? std::to_string(line) + ": " : " ") + what),
      line_(line) {}

void RefuseEvent(const std::filesystem::path& folder, int32_t rank, int64_t event,
                 const std::string& what) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (RankOfTraceFile(name) != rank) continue;
    if (IsPackedFile(name))
      throw TraceError(entry.path().string(), 0, "event " + std::to_string(event) + ": " + what);
    throw TraceError(entry.path().string(), LineOfEvent(ReadTraceText(entry.path()), event), what);
  }
  throw TraceError(folder.string(), 0, what);
}

}  // namespace shardproof
