// packed_trace.h: how does a trace travel between processes of the suite, and wait to be judged
// again?
//
// Packed, a trace is smaller than its text and read many times faster. Text is the format for
// others (FORMAT.md); packed bytes may change with any version of the suite, and a file of them
// begins with a line that only the version which wrote it accepts. What is read comes from a
// process that ran foreign code, or from anywhere, so it goes through the same gate as text
// (row_gate.h): what the reader of text refuses is refused here, with the event's number.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/trace/event.h"
#include "conformance/trace/reader.h"
#include "conformance/trace/trace_cursor.h"

namespace shardproof {

// Throws std::invalid_argument: an index or slice lies outside the trace's tables.
std::string PackTrace(const Trace& trace);
// Gives what ReadTrace gives of TraceToText, bit for bit, or throws TraceError.
Trace UnpackTrace(std::string_view bytes, std::string_view source_name);

// The same as a file, trace.NNNNN.packed.
std::string PackTraceFile(const Trace& trace);
Trace UnpackTraceFile(std::string_view bytes, std::string_view source_name);

// The file in two pieces, one behind the other, of rows that are read as they are packed: it takes
// the memory of its bytes.
struct PackedFile {
  std::string header, rows;
  int64_t events = 0;
};
PackedFile PackRows(TraceCursor& rows);

}  // namespace shardproof
