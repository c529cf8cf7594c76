#include "conformance/trace/trace_cursor.h"

#include <new>
#include <system_error>
#include <utility>

#include "conformance/common/mapped_file.h"
#include "conformance/trace/open_trace.h"
#include "conformance/trace/reader.h"
#include "conformance/trace/trace_file.h"

namespace shardproof {

Trace TraceCursor::Take() {
  Trace rows;  // alone
  rows.events.swap(trace_.events);
  rows.ranges.swap(trace_.ranges);
  rows.reads.swap(trace_.reads);
  rows.numbers.swap(trace_.numbers);
  rows.values.swap(trace_.values);
  trace_.events.reserve(rows.events.size());
  trace_.ranges.reserve(rows.ranges.size());
  Trace taken = trace_;
  taken.events = std::move(rows.events);
  taken.ranges = std::move(rows.ranges);
  taken.reads = std::move(rows.reads);
  taken.numbers = std::move(rows.numbers);
  taken.values = std::move(rows.values);
  return taken;
}

std::unique_ptr<TraceCursor> OpenTrace(const std::filesystem::path& path) {
  std::unique_ptr<MappedFile> file;
  try {
    file = std::make_unique<MappedFile>(path);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::not_enough_memory) throw std::bad_alloc();
    throw TraceError(path.string(), 0, "cannot be read: " + error.code().message());
  }
  return IsPackedFile(path.filename().string()) ? OpenPacked(std::move(file), path.string())
                                                : OpenText(std::move(file), path.string());
}

}  // namespace shardproof
