// reduction.h: is every gradient reduced exactly once, complete, over the right ranks, in the right
// dtype?
//
// Judges FS-05, FS-10 to FS-12, FS-19, FS-21, FS-22, FS-27, FS-29, FS-30, FS-36, FS-37 and FS-42 by
// following each contribution (what one node adds on one rank for one microbatch) from the kernel
// that computes it to publish.
#pragma once
#include <cstdint>
#include <set>
#include <tuple>

#include "conformance/checks/base/analysis.h"

namespace shardproof {

CheckResult CheckReduction(const Analysis& a);

// Its parts: what published gradients are made of, how each reduction was done, what reductions
// carry that is no gradient, and what gradients are added to.
CheckResult CheckGradientContents(const Analysis& a);
CheckResult CheckReductionOps(const Analysis& a);
CheckResult CheckZeros(const Analysis& a);
CheckResult CheckClears(const Analysis& a);
CheckResult CheckSums(const Analysis& a);

// Instance, entry call and key of each gradient that was added to memory that nobody had written.
using UnclearedSum = std::tuple<int32_t, int32_t, int32_t>;
std::set<UnclearedSum> UnclearedSums(const Analysis& a);

}  // namespace shardproof
