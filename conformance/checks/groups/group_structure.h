// group_structure.h: do the groups that ranks asked for and created have the members that the
// grid's formula gives?
#pragma once
#include "conformance/checks/base/analysis.h"

namespace shardproof {

// Judges PG-01 to PG-07, PG-13, PG-15 and PG-17. REQUIRES: a.has_case().
CheckResult CheckGroupStructure(const Analysis& a);

}  // namespace shardproof
