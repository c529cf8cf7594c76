// left_behind.h: has an engine left its processes as it found them?
#pragma once
#include "conformance/checks/base/check.h"

namespace shardproof {

// GE-37 alone, from Run::left_behind: for runs that are only compared with others, too.
CheckResult JudgeLeftBehind(const Run& run);

}  // namespace shardproof
