// numerics.h: are losses, gradients, norms and parameters those of the unsharded oracle, bit for
// bit?
//
// Judges FS-01, FS-15 to FS-17, FS-20, FS-23 to FS-25, FS-28, FS-34, GE-29 to GE-31, GE-33 and
// GE-34. Values are compared, not memory: -0 equals +0, and NaN equals nothing.
#pragma once
#include "conformance/checks/base/analysis.h"

namespace shardproof {

CheckResult CheckNumerics(const Analysis& a);

// Its parts, each judging one kind of evidence.
CheckResult CheckPublished(const Analysis& a);  // parameters and gradients
CheckResult CheckReads(const Analysis& a);      // parameters as nodes read them
CheckResult CheckScalars(const Analysis& a);    // samples, losses, norms

}  // namespace shardproof
