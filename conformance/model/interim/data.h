// data.h: which values do parameters start with, and which tokens does a sample hold?
#pragma once
#include <cstdint>

#include "conformance/model/interim/tables.h"

namespace shardproof {

// Pure functions of the seed and of logical names and indices: the same on every rank.
float InitialElement(uint64_t seed, const ParamDef& param, int64_t index);
// tokens and labels: sequence entries each, in [0, vocab). They differ from sample to sample and step to step.
void FillSample(uint64_t seed, int64_t step, int64_t sample, const Dims& dims, int32_t* tokens, int32_t* labels);

}  // namespace shardproof
