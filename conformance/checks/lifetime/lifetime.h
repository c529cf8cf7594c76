// lifetime.h: is every parameter there when it is read, gone when it should be, and all memory
// given back?
//
// Judges FS-02, FS-03, FS-09, FS-13, FS-14, FS-31 to FS-33 and GE-38.
#pragma once
#include "conformance/checks/base/analysis.h"

namespace shardproof {

CheckResult CheckLifetime(const Analysis& a);

// Its parts: parameters as they are read; windows of units; blocks and handles; what the host
// reads.
CheckResult CheckGatheredWhenRead(const Analysis& a);
CheckResult CheckUnitWindows(const Analysis& a);
CheckResult CheckMemory(const Analysis& a);
CheckResult CheckHostReads(const Analysis& a);

}  // namespace shardproof
