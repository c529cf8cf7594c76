// config_rules.h: which knobs do not go together?
#pragma once
#include "reference/core/config.h"

namespace reference {

class Knobs;

constexpr const char* kOverlap = "overlap_moe_expert_parallel_comm";

// Throws Rejected for a combination that no engine could run.
void CheckRules(const Knobs& knobs, const Config& config);

}  // namespace reference
