// step_hooks.h: do the hooks of a step come once, in order, and in train steps alone (FS-38)?
#pragma once
#include <cstdint>
#include <vector>

#include "conformance/checks/order/announced.h"

namespace shardproof {

void JudgeStepHooks(const Analysis& a, int32_t rank, int instance, const Announced& announced,
                    CheckResult& result, FindingSink& sink);

// Outside train steps such hooks are up to the engine, but not to one of its ranks: of the ranks
// that announce a hook at all, all announce it in an entry call, or none does.
void JudgeSameStepHooks(const Analysis& a, int instance, const std::vector<Announced>& by_rank,
                        FindingSink& sink);

}  // namespace shardproof
