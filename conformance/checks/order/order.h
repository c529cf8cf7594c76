// order.h: do life-cycle hooks come in a legal order, and does each have its effect?
//
// Judges FS-04, FS-06 to FS-08, FS-26, FS-35, FS-38, FS-39 and FS-44. Announced hooks (marks) are
// judged by the hook table H0 to H12 (order_marks.cc, step_hooks.h, module_hooks.h,
// hook_effects.h); gathers and reductions by effect. Without marks only the effects are judged.
#pragma once
#include "conformance/checks/base/analysis.h"

namespace shardproof {

CheckResult CheckOrder(const Analysis& a);

// Its parts.
CheckResult CheckMarks(const Analysis& a);
CheckResult CheckGatherOrder(const Analysis& a);
CheckResult CheckNanGuard(const Analysis& a);

}  // namespace shardproof
