// meta_init.h: where do the parameters of an engine that create gives no values come from?
//
// Judges, in cases with init_device = meta: FS-48 (create, and a load that follows it, ask for no
// initial values, and create publishes none), FS-49 (create makes room for what is kept, and for
// nothing else) and FS-50 (what nodes read, and what is published, has got a value since create).
// Whether it is the right value is for FS-01, FS-23 and FS-24 to say.
#pragma once
#include <set>
#include <string>

#include "conformance/checks/base/analysis.h"

namespace shardproof {

CheckResult CheckMetaInit(const Analysis& a);

// What each run of such a case shows.
std::set<std::string> ShownWithMetaInit(const InstanceFacts& facts);

}  // namespace shardproof
