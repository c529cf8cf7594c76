// reader.h: how does a trace come back from disk?
//
// Whatever is wrong with a file is refused with its name and the line's number: bad JSON, unknown
// kinds and keys, indices that lead nowhere, a line that is missing or of another trace, a file
// that was cut off, a folder that holds the ranks of different runs. What is accepted can be judged
// without further looks at indices.
#pragma once
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof {

class TraceError : public std::runtime_error {
 public:
  // line 0: the file as a whole.
  TraceError(std::string_view source, int64_t line, const std::string& what);
  int64_t line() const { return line_; }

 private:
  int64_t line_;
};

// source_name appears in messages only. Throws TraceError.
Trace ReadTrace(std::string_view text, std::string_view source_name);
// As text, or packed (packed_trace.h).
Trace ReadTraceFile(const std::filesystem::path& path);

// All ranks of one run, by rank: trace.00000.jsonl or trace.00000.packed and so on, the only files
// in the folder that are looked at. Throws TraceError unless there is one file for each rank of the
// world and all are of one case.
std::vector<Trace> ReadTraceFolder(const std::filesystem::path& folder);

// The folders of the runs that a folder holds: itself if a trace lies in it, else those of its
// folders that traces lie in, by name. Neither: itself, so that reading it says what is missing.
std::vector<std::filesystem::path> RunsIn(const std::filesystem::path& folder);

// Refuses an event of a folder that was read: throws TraceError, which names file and line.
[[noreturn]] void RefuseEvent(const std::filesystem::path& folder, int32_t rank, int64_t event,
                              const std::string& what);

}  // namespace shardproof
