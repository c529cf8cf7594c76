// declined.h: what is wrong with a run whose engine declined its case?
#pragma once
#include "conformance/checks/base/check.h"

namespace shardproof {

// Findings alone count. An instance that declined in create never ran what the case asks: of it,
// only what needs no case is judged, and how it answered. Other instances are
// judged as if they were the case; those that lack an entry call of the script as far as they came.
// REQUIRES: Declines(run).
CheckResult CheckDeclined(const Run& run);

}  // namespace shardproof
