// objects.h: is everything that a rank uses there when it is used, and what it is used as?
//
// Follows blocks, streams, events, groups and requests through each trace, in the order of issue.
// Needs no case. Judges GE-18 and GE-19.
#pragma once
#include "conformance/checks/base/analysis.h"

namespace shardproof {

CheckResult CheckObjects(const Analysis& a);

// Its parts. Findings are reported whatever the traces provide; GE-18 and GE-19 are judged by
// CheckObjects, where all the evidence is there.

// GE-18: blocks of one rank.
void FollowBlocks(const Analysis& a, int32_t rank, FindingSink& sink);
// GE-19: streams, events, groups and requests of one rank.
void FollowHandles(const Analysis& a, int32_t rank, FindingSink& sink);
// GE-19: what communicators are, across all ranks.
void FollowCommunicators(const Analysis& a, FindingSink& sink);

}  // namespace shardproof
