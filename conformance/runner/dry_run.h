// dry_run.h: how does a case become a Run when each rank runs alone?
#pragma once
#include <string>

#include "conformance/runner/sim_run.h"

namespace shardproof {

// Why a rank that runs alone cannot show what the case asks; empty: it can.
std::string NotForDry(const Case& c);

// The ranks one after the other, in this thread (fabric/dry/dry_fabric.h). Traces hold the order of
// events and what was published, no values. Throws std::runtime_error: something failed in the
// suite, on some rank. REQUIRES: NotForDry(c) is empty.
RunData RunDry(const Case& c, const Models& models, const Plugin& plugin,
               const SimRunOptions& options);

// One rank of it.
RankOutput RunDryRank(int32_t rank, const Case& c, const Models& models, const Plugin& plugin,
                      const SimRunOptions& options);

}  // namespace shardproof
