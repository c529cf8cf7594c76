// open_trace.h: the cursors of the two formats. Internal to the readers.
#pragma once
#include <memory>
#include <string>

#include "conformance/common/mapped_file.h"
#include "conformance/trace/trace_cursor.h"

namespace shardproof {

std::unique_ptr<TraceCursor> OpenText(std::unique_ptr<MappedFile> file, std::string source_name);
// The file as PackTraceFile makes it. Throws TraceError.
std::unique_ptr<TraceCursor> OpenPacked(std::unique_ptr<MappedFile> file, std::string source_name);

}  // namespace shardproof
