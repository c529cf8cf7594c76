// node_grads.h: in which dtype did nodes add to gradients?
#pragma once
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/trace/event.h"

namespace shardproof {

// Nodes added to every gradient in bf16, the parameters' dtype (spf_compute.grad_dtype). False
// where any rank added to any in fp32, and where parameters are fp32.
bool NodesAddInBf16(const Case& c, size_t instance, const std::vector<Trace>& traces);

}  // namespace shardproof
