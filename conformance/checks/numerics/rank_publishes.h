// rank_publishes.h: does each rank show after every train_step what it shows after one?
#pragma once
#include "conformance/checks/base/analysis.h"
#include "conformance/checks/base/published.h"

namespace shardproof {

// Adds findings of FS-28. oracle: which calls update; params: what all ranks publish.
void JudgeRankPublishes(const Analysis& a, int instance, const OracleRun& oracle,
                        const Published& params, FindingSink& sink);

}  // namespace shardproof
