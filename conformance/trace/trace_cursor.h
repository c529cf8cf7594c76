// trace_cursor.h: how is a trace read row by row, so that what has been judged can go?
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof {

// One trace. What it refuses is what reader.h refuses, with the same words.
class TraceCursor {
 public:
  virtual ~TraceCursor() = default;
  TraceCursor() = default;
  TraceCursor(const TraceCursor&) = delete;
  TraceCursor& operator=(const TraceCursor&) = delete;

  // Reads what comes before the first row; Next() does so too. Throws TraceError.
  virtual void Begin() = 0;
  // Reads a row to the end of trace().events. False: there are no more, and the trace says how it
  // ended. Throws TraceError.
  virtual bool Next() = 0;
  // Header, groups, streams and texts as far as they were read, and the rows since the last Take().
  Trace& trace() { return trace_; }
  const Trace& trace() const { return trace_; }
  // What trace() is. From here on it has the same header and tables, and no rows.
  Trace Take();

 protected:
  Trace trace_;
};

// All ranks of one run, as ReadTraceFolder reads them (reader.h).
std::vector<std::unique_ptr<TraceCursor>> OpenTraceFolder(const std::filesystem::path& folder);

// A file, as text or packed, which is read as far as the rows that were asked for. Throws
// TraceError, also for a path that is no regular file; std::bad_alloc where there are no addresses.
std::unique_ptr<TraceCursor> OpenTrace(const std::filesystem::path& path);

}  // namespace shardproof
