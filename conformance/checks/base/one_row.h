// one_row.h: what is said of a requirement of which several checks, or several runs, have spoken?
#pragma once
#include "conformance/checks/base/check.h"

namespace shardproof {

// Leaves one row for each requirement: a finding judges it, else missing evidence leaves it open,
// else it is judged, else not asked. To be called again whenever results were merged.
void KeepOneRowEach(CheckResult& result);

}  // namespace shardproof
