// describe.h: how does a person recognise an event of a trace?
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/checks/program/program.h"
#include "conformance/trace/event.h"

namespace shardproof::graph {

// "all_gather of full parameters, module 3, on dp_cp (stream ag)"
std::string Describe(const Trace& trace, const Event& event, const Names& names);
std::string StreamName(const Trace& trace, int32_t stream);
// An entry, and for kernels their position on the communicator.
std::string Describe(const Program& program, const Entry& entry);
// "all_gather #3 on dp_cp"
std::string DescribeOperation(const Program& program, uint32_t operation);
// "ranks 0, 2 and 3"
std::string DescribeRanks(const std::vector<int32_t>& ranks);

}  // namespace shardproof::graph
