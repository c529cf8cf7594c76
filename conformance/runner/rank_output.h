// rank_output.h: what does one rank of a run put out, and how does that travel between processes?
//
// Packed, it comes from a process that ran foreign code: what is read is of the rank and the case
// that were asked for, or refused.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "conformance/cases/case.h"
#include "conformance/checks/base/check.h"
#include "conformance/common/frame.h"
#include "conformance/runner/engine_time.h"
#include "conformance/trace/event.h"

namespace shardproof {

struct RankOutput {
  Trace trace;
  EngineOutcome outcome;
  EngineTime time;  // from create until the device work had run
  // What the engine has changed of its process and not put back, in words (own_state.h); set by
  // whoever runs a rank in a process of its own.
  std::string changed;
};

// A trace without a case is of a rank that did not come to its end: it does not travel.
std::string Pack(const RankOutput& output);
Frame FieldsOf(const Trace& trace, const EngineOutcome& outcome, const std::string& changed);
inline constexpr size_t kFieldsOfARank = 5;

// Of that rank of the case. Throws std::runtime_error that names both: it is not whole, or of
// another rank or case.
RankOutput Unpack(std::string_view packed, int32_t rank, const Case& c);
// The same of the fields from there on.
RankOutput OutputOf(const FrameView& fields, size_t from, int32_t rank, const Case& c);

}  // namespace shardproof
