// check_all.h: what can be said about one run, by all checks?
#pragma once
#include "conformance/checks/base/check.h"

namespace shardproof {

class Analysis;  // conformance/checks/base/analysis.h

// All families. Foreign traces (run.spec == nullptr) get the case-free checks; the others are
// not asked. Findings of the deadlock and race families are left out when operations do not
// match: positions mean nothing then.
CheckResult CheckAll(const Run& run);

// Of these the families that look at events; how ranks ended has been said, or is not known.
CheckResult CheckFamilies(const Analysis& analysis, CheckResult so_far = {});

}  // namespace shardproof
