// program.h: which operations are one microbatch, in which order?
#pragma once
#include <set>
#include <vector>

#include "reference/fsdp/activations.h"

namespace reference {

// Forward only, as in eval.
std::vector<Operation> EvalOperations(const spf_program& program);

// By module: the outermost ancestor of this type (the segment that recompute runs again), or -1.
std::vector<int32_t> SegmentsOfType(const spf_model& model, const std::string& type);

// Forward, then backward in reverse; nodes that have nothing to do in backward are left out.
// segment_of: nodes of one segment that follow each other run their forward again before the first
// backward operation of them; -1: not. Empty: no recompute.
std::vector<Operation> TrainOperations(const spf_program& program,
                                       const std::vector<int32_t>& segment_of);

}  // namespace reference
