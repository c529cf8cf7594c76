// lost_prefetch.h: does a train step gather ahead what the step before has gathered ahead?
//
// An engine may gather ahead or not. One that does in one step and no longer in the next has lost
// state on the way: its gathers are no longer hidden, and no number is wrong.
#pragma once
#include "conformance/checks/base/analysis.h"
#include "conformance/checks/base/windows.h"

namespace shardproof {

// FS-45. windows: of that rank.
void JudgeLostPrefetch(const Analysis& a, int32_t rank, const RankWindows& windows,
                       CheckResult& result, FindingSink& sink);

}  // namespace shardproof
