// loss_chunks.h: does a loss in chunks need the memory of one chunk's logits?
//
// Judges FS-46 (a chunk's forward and backward come before the next chunk's forward) and FS-47
// (logits of the chunks before are gone by then), in cases with loss_chunks > 1, from what the host
// issues and what lies in which bytes. That gradients are reduced after the last chunk is FS-05's
// to say, that no chunk is missing FS-15's and FS-16's.
#pragma once
#include <set>
#include <string>

#include "conformance/checks/base/analysis.h"

namespace shardproof {

CheckResult CheckLossChunks(const Analysis& a);

// What each run of such a case shows.
std::set<std::string> ShownWithLossChunks(const InstanceFacts& facts);

}  // namespace shardproof
