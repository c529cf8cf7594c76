// loss_chunks.h: does a loss in chunks need the memory of one chunk's logits?
//
// Judges FS-46 (a chunk's forward and backward come before the next chunk's forward) and FS-47
// (logits of the chunks before are gone by then), in cases with loss_chunks > 1, from what the host
// issues and what lies in which bytes. That gradients are reduced after the last chunk, and
// once, is for FS-05, FS-12 and FS-37 to say, that no chunk is missing for FS-15 and FS-16.
#pragma once
#include <set>
#include <string>

#include "conformance/checks/base/analysis.h"

namespace shardproof {

CheckResult CheckLossChunks(const Analysis& a);

// What each run of such a case shows.
std::set<std::string> ShownWithLossChunks(const InstanceFacts& facts);

}  // namespace shardproof
