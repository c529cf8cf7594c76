// metamorphic.h: do two runs that must agree agree?
//
// Which pairs must agree, and under which requirement, is the caller's to say: twins on and off
// (PG-08), explicit collection and own grid (PG-12), prefetch limits (FS-40), strategies (FS-41),
// with and without eval (FS-13), reduce each microbatch or only the sum (FS-18), two timings
// (GE-32).
#pragma once
#include <functional>
#include <string>

#include "conformance/checks/base/check.h"

namespace shardproof {

// Published parameters, gradients, losses and norms of both runs are equal bit for bit, train step
// by train step (entry calls of other kinds in between may differ). requirement: under which id a
// difference is reported. REQUIRES: both runs have a case with the same instances and models.
CheckResult CompareResults(const Run& a, const Run& b, const std::string& requirement);

// Each rank issues the same collectives (kind, dtype, reduction, count, counts, root, members) in
// the same order on corresponding communicators. same_comm(comm of a, its name) -> label under
// which communicators are put together; collectives of one label are compared as one sequence. The
// default keeps each communicator apart.
using CommLabel = std::function<std::string(const GroupInfo&)>;
CheckResult CompareCollectiveSequences(const Run& a, const Run& b, const std::string& requirement,
                                       const CommLabel& label = {});

// Label for PG-08: a twin counts as the group that it copies.
std::string TwinAsReducingGroup(const GroupInfo& group);

}  // namespace shardproof
