// graph_checks.h: do the ranks' operations meet, can they hang, and do they race?
//
// Pure functions of the traces of one run, by rank. Each later one needs the earlier ones to hold
// and says not-checkable otherwise; CheckGraph does all three and lowers the traces once.
#pragma once
#include <vector>

#include "conformance/checks/base/check.h"
#include "conformance/checks/program/program.h"
#include "conformance/trace/event.h"

namespace shardproof {

CheckResult CheckMatching(const std::vector<Trace>& traces,
                          const graph::Names& names = {});  // GE-01, GE-02, GE-08, GE-09
CheckResult CheckDeadlock(const std::vector<Trace>& traces,
                          const graph::Names& names = {});  // GE-03, GE-04, GE-10
CheckResult CheckRaces(const std::vector<Trace>& traces,
                       const graph::Names& names = {});  // GE-05, GE-06, GE-07, GE-11
CheckResult CheckGraph(const std::vector<Trace>& traces,
                       const graph::Names& names = {});  // all of them

}  // namespace shardproof
