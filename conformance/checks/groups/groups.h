// groups.h: are process groups what the case's grid says, and does each carry only what it is for?
//
// Judges PG-01 to PG-07, PG-09 to PG-11, PG-13 to PG-15, PG-17 and PG-18. Membership comes from
// group events, routing from the bytes that each collective carried.
#pragma once
#include "conformance/checks/base/analysis.h"

namespace shardproof {

CheckResult CheckGroups(const Analysis& a);

}  // namespace shardproof
