// shown.h: which requirements did a trace break that a test wrote, and which did it keep?
//
// A test says so in its own record (--gtest_output=json): "broken FS-05" for each requirement with
// a finding, "kept FS-05" for what was judged in a result without any. The matrix of requirements
// is made of these records (requirements/matrix), so every result that a check made of a trace
// comes by here; FoundIn() brings it. Results that no trace stands behind do not.
#pragma once
#include "conformance/checks/base/check.h"

namespace shardproof {

CheckResult Shown(CheckResult result);
void Show(const CheckResult& result);

}  // namespace shardproof
