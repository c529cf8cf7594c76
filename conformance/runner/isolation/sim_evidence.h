// sim_evidence.h: how does a run on sim leave the process that made it?
#pragma once
#include "conformance/common/frame.h"
#include "conformance/runner/sim_run.h"

namespace shardproof {

Frame FieldsOf(const RunData& data);
// Throws std::runtime_error that says what cannot be read, or is of another case. REQUIRES: c
// outlives the answer.
RunData RunDataOf(const FrameView& fields, const Case& c);

}  // namespace shardproof
