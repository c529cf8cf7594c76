// with_partner.h: what differs between a case's run and one that it must agree with, and which of
// the two is wrong?
#pragma once
#include "conformance/checks/base/check.h"
#include "conformance/runner/judge.h"

namespace shardproof {

// Findings name the other run's case, and what the checks say of that run alone. REQUIRES: nothing
// was found in the case's run alone; run.spec is the case.
CheckResult CompareWithPartner(const Run& run, const PartnerRun& other);

}  // namespace shardproof
