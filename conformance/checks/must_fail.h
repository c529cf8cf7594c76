// must_fail.h: does an engine stop where gradients are NaN?
//
// FS-26, for cases with check_for_nan_in_grad whose second sample of step 1 has a loss that is not
// a number (MustFail()). Train step 1 fails on a rank that computed with that sample, with words,
// and that rank has sent no gradient in this step; the others are ended by it, or fail as well.
#pragma once
#include "conformance/checks/base/check.h"

namespace shardproof {

// Everything that CheckAll() finds but the end that is asked for. Only FS-26 needs evidence.
CheckResult CheckMustFail(const Run& run);

}  // namespace shardproof
