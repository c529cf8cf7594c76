// require_valid.h: can a model with this config exist at all?
#pragma once
#include "conformance/model/model.h"

namespace shardproof {

// Throws std::invalid_argument that names the field, its value and what is allowed.
void RequireValid(const ModelConfig& config, int64_t max_tokens);

}  // namespace shardproof
