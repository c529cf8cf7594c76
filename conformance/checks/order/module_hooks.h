// module_hooks.h: is the pre-forward hook of a module that is no unit announced whenever it is
// entered, and once (FS-39)?
//
// Which modules have the hook is up to the engine. One that announces it for a module does so in
// every forward of it. Units are judged by order_marks.cc.
#pragma once
#include <cstdint>

#include "conformance/checks/order/announced.h"

namespace shardproof {

void JudgeModuleHooks(const Analysis& a, int32_t rank, int instance, const Announced& announced,
                      CheckResult& result, FindingSink& sink);

}  // namespace shardproof
