// writer.h: how does a trace get onto disk?
//
// FORMAT.md in this folder is the format. Equal traces give equal bytes.
#pragma once
#include <filesystem>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof {

// REQUIRES: indices and slices of the trace lie inside its tables; otherwise std::invalid_argument
// is thrown before anything of the offending event is written.
void WriteTrace(const Trace& trace, std::ostream& out);
std::string TraceToText(const Trace& trace);

// The file of a rank inside a trace folder: "trace.00003.jsonl".
std::string TraceFileName(int rank);

// What the folder of a case's traces is called inside that of --trace: its id, or, of one that is
// longer than file systems take (255 bytes), the first 200 bytes, "~" and a hash of the whole id.
std::string TraceFolderName(std::string_view case_id);

// One file per trace. The folder is made if need be; trace files of an earlier run are removed
// first, so that no mixed folder comes into being. Throws std::runtime_error that names the file
// and the system's reason.
void WriteTraceFolder(const std::vector<Trace>& traces, const std::filesystem::path& folder);

}  // namespace shardproof
