// trace convert: recorded traces packed, to be judged again and again, or as text.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/common/safe_text.h"
#include "conformance/runner/command/run_command.h"
#include "conformance/trace/packed_trace.h"
#include "conformance/trace/reader.h"
#include "conformance/trace/trace_file.h"
#include "conformance/trace/writer.h"

namespace shardproof {

namespace {

void Write(const std::filesystem::path& path, const std::string& bytes) {
  errno = 0;
  std::ofstream out(path, std::ios::binary);
  out << bytes;
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

}  // namespace

int ConvertCommand(const Options& options) {
  const std::string kind = "trace:";
  if (!options.target.starts_with(kind))
    throw std::invalid_argument("\"" + options.target + "\": trace convert takes trace:DIR");
  const std::filesystem::path folder = options.output;
  RefuseFolderWithTraces(folder);
  const std::vector<Trace> traces = ReadTraceFolder(options.target.substr(kind.size()));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw std::invalid_argument("--to " + folder.string() + ": no folder (" + error.message() +
                                ")");
  size_t events = 0;
  for (const Trace& trace : traces) {
    std::filesystem::path path = folder / TraceFileName(trace.rank);
    if (!options.as_text) path.replace_extension(kPackedEnding);
    Write(path, options.as_text ? TraceToText(trace) : PackTraceFile(trace));
    events += trace.events.size();
  }
  std::cout << VisibleLine(options.output) << ": " << events << " events of " << traces.size()
            << (traces.size() == 1 ? " rank" : " ranks")
            << (options.as_text ? ", as text\n" : ", packed\n");
  return 0;
}

}  // namespace shardproof
