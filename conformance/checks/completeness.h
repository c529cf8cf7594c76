// completeness.h: what must a run show before nothing is open?
//
// Families say what they judged and what they could not. Here stands what they cannot see: that a
// family said nothing at all, because the events that it looks for never came.
#pragma once
#include <set>
#include <string>

#include "conformance/checks/base/analysis.h"

namespace shardproof {

// Requirements that the run of every engine shows, from the case (or its absence) alone. A family
// may judge more where there is more to see.
std::set<std::string> ShownByEveryRun(const Analysis& a);

// What a run has at all.
struct Shows {
  bool any_event = false, any_range = false;
  std::set<std::string> due;  // ShownByEveryRun
};

// Leaves one row for each requirement. A requirement
// - that ShownByEveryRun has and that nobody spoke of becomes missing;
// - with missing evidence is not judged, unless there is a finding.
// A run without any event has judged nothing but its findings; one without any byte range, no
// races.
void SettleWhatIsOpen(const Analysis& a, CheckResult& result);
void SettleWhatIsOpen(const Shows& shows, CheckResult& result);

}  // namespace shardproof
