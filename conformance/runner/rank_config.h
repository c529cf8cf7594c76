// rank_config.h: what does one instance of a case tell the host of one rank?
#pragma once
#include <cstddef>
#include <cstdint>

#include "conformance/cases/case.h"
#include "conformance/host/host.h"

namespace shardproof {

// Knobs, groups, the rank's place among the data ranks and in the model. model outlives the host.
HostConfig HostConfigOf(const Case& c, size_t instance, int32_t rank, const Model& model);

// A rank that is outside the span of an explicit collection has no part in that instance.
bool TakesPart(const InstanceSpec& spec, int32_t rank);

}  // namespace shardproof
