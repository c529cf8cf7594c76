// tensor_parallel.h: does an engine sum over tp what its ranks hold parts of, and nothing else?
//
// Judges TP-01 to TP-06, in cases with tensor_parallel and a tp of more than one rank. What
// collectives sum is followed by bytes (sums.cc), whose gradients are in a sum by contributions
// (gradients.cc), norms and numbers of zeros by what the oracle's gradients make of usual mistakes
// (statistics.cc).
#pragma once
#include <set>
#include <string>

#include "conformance/checks/base/analysis.h"

namespace shardproof {

CheckResult CheckTensorParallel(const Analysis& a);

// Its parts.
CheckResult CheckTpSums(const Analysis& a);        // TP-01 to TP-03
CheckResult CheckTpGradients(const Analysis& a);   // TP-04, TP-05
CheckResult CheckTpStatistics(const Analysis& a);  // TP-06

// What each run of such a case shows.
std::set<std::string> ShownWithTensorParallel(const InstanceFacts& facts);

// The model of the case is split over ranks.
inline bool IsSplit(const InstanceFacts& facts) { return facts.spec().model.tp > 1; }

}  // namespace shardproof
