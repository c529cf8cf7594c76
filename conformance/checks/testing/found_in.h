// found_in.h: what did a check find in a run, by requirement?
#pragma once
#include <set>
#include <string>

#include "conformance/checks/base/check.h"

namespace shardproof {

// Requirements with findings, each once: "FS-01 FS-02". The result is one that a check made of a
// trace: it is shown (shown.h).
std::string FoundIn(const CheckResult& result);
// The same of a result that the test made up.
std::string FoundWithoutTrace(const CheckResult& result);
// Requirements that are not checkable.
std::set<std::string> NotCheckableIn(const CheckResult& result);

}  // namespace shardproof
