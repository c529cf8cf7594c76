// priorities.h: may communicator kernels overtake each other on a device?
#pragma once
#include <string>

#include "conformance/checks/program/program.h"

namespace shardproof::graph {

// A device starts kernels of streams with a higher priority first, so where the streams that carry
// communicator kernels differ in priority, nothing may be claimed of profile E1 (they start in
// issue order). Which streams do, in words; empty: on no rank do they.
std::string PrioritiesThatDiffer(const Program& program);

}  // namespace shardproof::graph
