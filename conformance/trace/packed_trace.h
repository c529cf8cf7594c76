// packed_trace.h: how does a trace travel between processes of the suite?
//
// Packed, a trace is smaller than its text and read many times faster. Nobody else writes it and no
// file holds it: it may change at any time. What is read comes from a process that ran foreign
// code, so it goes through the same gate as text (row_gate.h): what the reader of text refuses is
// refused here, with the event's number.
#pragma once
#include <string>
#include <string_view>

#include "conformance/trace/event.h"
#include "conformance/trace/reader.h"

namespace shardproof {

// Throws std::invalid_argument: an index or slice lies outside the trace's tables.
std::string PackTrace(const Trace& trace);
// Gives what ReadTrace gives of TraceToText, bit for bit, or throws TraceError.
Trace UnpackTrace(std::string_view bytes, std::string_view source_name);

}  // namespace shardproof
