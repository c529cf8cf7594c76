// ended_early.h: what is left of the verdicts on a run that did not go to its end?
#pragma once
#include "conformance/checks/base/analysis.h"

namespace shardproof {

// result: of all checks. After an early end a requirement is judged only where something was found:
// what was not reached could have broken it, so it becomes not-checkable, with how the run ended.
// An early end that no finding explains, that is: none of a MUST, is a finding of its own (GE-26):
// such a run never passes. An engine that declines its case (robustness/answers.h) has explained
// it. Runs that went to their end, and illegal cases, which create ends, are left alone.
void JudgeEarlyEnd(const Analysis& a, CheckResult& result);

}  // namespace shardproof
