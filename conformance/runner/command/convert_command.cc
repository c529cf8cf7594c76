// trace convert: recorded traces packed, to be judged again and again, or as text.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/common/safe_text.h"
#include "conformance/runner/command/run_command.h"
#include "conformance/trace/packed_trace.h"
#include "conformance/trace/reader.h"
#include "conformance/trace/trace_cursor.h"
#include "conformance/trace/trace_file.h"
#include "conformance/trace/writer.h"

namespace shardproof {

namespace {

void Write(const std::filesystem::path& path, const std::string& head,
           const std::string& rest = {}) {
  errno = 0;
  std::ofstream out(path, std::ios::binary);
  out << head << rest;
  out.close();
  if (!out)
    throw std::invalid_argument("--to " + path.string() + ": it cannot be written (" +
                                std::strerror(errno) + ")");
}

// What lies in the folder would be of another run, or the only copy of this one.
void RefuseFolderWithTraces(const std::filesystem::path& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (RankOfTraceFile(entry.path().filename().string()) >= 0)
      throw std::invalid_argument("--to " + folder.string() + ": traces lie in it already");
  }
}

void MakeFolder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw std::invalid_argument("--to " + folder.string() + ": no folder (" + error.message() +
                                ")");
}

struct Written {
  int64_t events = 0;
  size_t ranks = 0;
};

// All is read before anything is written.
Written WritePacked(const std::filesystem::path& from, const std::filesystem::path& folder) {
  std::vector<PackedFile> files;
  for (const std::unique_ptr<TraceCursor>& rows : OpenTraceFolder(from))
    files.push_back(PackRows(*rows));
  MakeFolder(folder);
  Written written{0, files.size()};
  for (size_t rank = 0; rank < files.size(); ++rank) {
    std::filesystem::path path = folder / TraceFileName(static_cast<int32_t>(rank));
    Write(path.replace_extension(kPackedEnding), files[rank].header, files[rank].rows);
    written.events += files[rank].events;
  }
  return written;
}

Written WriteText(const std::filesystem::path& from, const std::filesystem::path& folder) {
  const std::vector<Trace> traces = ReadTraceFolder(from);
  MakeFolder(folder);
  Written written{0, traces.size()};
  for (const Trace& trace : traces) {
    Write(folder / TraceFileName(trace.rank), TraceToText(trace));
    written.events += static_cast<int64_t>(trace.events.size());
  }
  return written;
}

}  // namespace

int ConvertCommand(const Options& options) {
  const std::string kind = "trace:";
  if (!options.target.starts_with(kind))
    throw std::invalid_argument("\"" + options.target + "\": trace convert takes trace:DIR");
  const std::filesystem::path folder = options.output;
  RefuseFolderWithTraces(folder);
  const std::filesystem::path from = options.target.substr(kind.size());
  const Written written = options.as_text ? WriteText(from, folder) : WritePacked(from, folder);
  std::cout << VisibleLine(options.output) << ": " << written.events << " events of "
            << written.ranks << (written.ranks == 1 ? " rank" : " ranks")
            << (options.as_text ? ", as text\n" : ", packed\n");
  return 0;
}

}  // namespace shardproof
