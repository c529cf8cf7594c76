#include "conformance/runner/rank_output.h"

#include <stdexcept>

#include "conformance/trace/packed_trace.h"

namespace shardproof {

namespace {

using Kind = EngineOutcome::Kind;

std::string Of(int32_t rank, const Case& c) {
  return "the evidence of rank " + std::to_string(rank) + " of " + Id(c);
}

}  // namespace

Frame FieldsOf(const Trace& trace, const EngineOutcome& outcome, const std::string& changed) {
  return {std::to_string(static_cast<int>(outcome.kind)), outcome.call, outcome.reason,
          trace.case_id.empty() ? "" : PackTrace(trace), changed};
}

std::string Pack(const RankOutput& output) {
  return PackFrame(FieldsOf(output.trace, output.outcome, output.changed));
}

RankOutput OutputOf(const FrameView& fields, size_t from, int32_t rank, const Case& c) {
  if (fields.size() < from + kFieldsOfARank)
    throw std::runtime_error(Of(rank, c) + " is not whole");
  RankOutput output;
  const int64_t kind = NumberOf(fields[from], 0, static_cast<int64_t>(Kind::kSuiteError));
  output.outcome = {static_cast<Kind>(kind), std::string(fields[from + 1]),
                    std::string(fields[from + 2])};
  output.changed = fields[from + 4];
  Trace& trace = output.trace;
  if (fields[from + 3].empty()) {
    trace.rank = rank;
    trace.world = c.world;
    return output;
  }
  trace = UnpackTrace(fields[from + 3], Of(rank, c));
  if (trace.rank != rank || trace.world != c.world || trace.case_id != Id(c)) {
    throw std::runtime_error(Of(rank, c) + " is of rank " + std::to_string(trace.rank) + " of " +
                             std::to_string(trace.world) + " of \"" + trace.case_id + "\"");
  }
  return output;
}

RankOutput Unpack(std::string_view packed, int32_t rank, const Case& c) {
  bool bad = false;
  const FrameView fields = FrameIn(&packed, &bad).value_or(FrameView{});
  if (fields.size() != kFieldsOfARank || !packed.empty())
    throw std::runtime_error(Of(rank, c) + " is not whole");
  return OutputOf(fields, 0, rank, c);
}

}  // namespace shardproof
