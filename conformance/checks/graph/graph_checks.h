// graph_checks.h: do the ranks' operations meet, can they hang, and do they race?
//
// Pure functions of the traces of one run, by rank. Each later one needs the earlier ones to hold
// and says not-checkable otherwise; CheckGraph does all three.
#pragma once
#include "conformance/checks/base/check.h"
#include "conformance/checks/program/lowered.h"

namespace shardproof {

CheckResult CheckMatching(const graph::Lowered& run);  // GE-01, 02, 08, 09, 15 to 17
CheckResult CheckDeadlock(const graph::Lowered& run);  // GE-03, 04, 10
CheckResult CheckRaces(const graph::Lowered& run);     // GE-05, 06, 07, 11
CheckResult CheckGraph(const graph::Lowered& run);     // all of them

}  // namespace shardproof
