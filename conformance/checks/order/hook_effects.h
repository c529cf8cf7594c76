// hook_effects.h: does each announced hook have its effect (FS-39)?
#pragma once
#include <cstdint>

#include "conformance/checks/order/announced.h"

namespace shardproof {

// Of one engine instance on one rank: after PRE_FORWARD and PRE_BACKWARD a unit's parameters are
// there, after POST_FORWARD and POST_BACKWARD they are gone.
void JudgeHookEffects(const Analysis& a, int32_t rank, int instance, const Announced& announced,
                      CheckResult& result, FindingSink& sink);

}  // namespace shardproof
