#include "conformance/checks/declined.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/check_all.h"
#include "conformance/checks/robustness/answers.h"
#include "conformance/checks/robustness/robustness.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

bool Same(const Finding& a, const Finding& b) {
  return a.requirement == b.requirement && a.rank == b.rank && a.event == b.event;
}

// At an event of an instance that did not decline.
bool OfOthers(const Finding& finding, const Run& run, const std::vector<bool>& declined) {
  if (finding.rank < 0 || finding.event < 0) return false;
  const Event& event = At(At(run.traces, finding.rank).events, finding.event);
  return event.instance < declined.size() && !declined[event.instance];
}

}  // namespace

CheckResult CheckDeclined(const Run& run) {
  const std::vector<bool> declined = DeclinedInCreate(run);
  const auto runs = std::count(declined.begin(), declined.end(), false);
  if (runs == static_cast<std::ptrdiff_t>(declined.size())) return CheckAll(run);
  CheckResult result = CheckAll({nullptr, run.traces, {}, {}, {}});
  result.Merge(CheckRobustness(run));
  if (runs == 0) return result;
  for (Finding& finding : CheckAll(run).findings) {
    const bool told = std::any_of(result.findings.begin(), result.findings.end(),
                                  [&](const Finding& other) { return Same(finding, other); });
    if (!told && OfOthers(finding, run, declined)) result.findings.push_back(std::move(finding));
  }
  return result;
}

}  // namespace shardproof
