// unit_buckets.h: how do plan, strategy and groups make the buckets of this rank?
#pragma once
#include "reference/core/context.h"

namespace reference {

// Lays out every bucket over the ranks that shard it and finds this rank's place. Allocates
// nothing.
std::vector<Bucket> MakeBuckets(const Config& config, const EngineGroups& groups,
                                const ModelPlan& plan);

}  // namespace reference
