// step_hooks.h: do the hooks of a step come once, in order, and in train steps alone (FS-38)?
#pragma once
#include <cstdint>

#include "conformance/checks/order/announced.h"

namespace shardproof {

void JudgeStepHooks(const Analysis& a, int32_t rank, int instance, const Announced& announced,
                    CheckResult& result, FindingSink& sink);

}  // namespace shardproof
