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

// The run without the instances that declined, as if the case had never asked them. Of each rank,
// rows has the numbers that the events have in the whole run.
struct OthersAlone {
  Case c;
  Run run;
  std::vector<std::vector<int64_t>> rows;
};

// By instance: its number among those that are kept, or -1.
std::vector<int32_t> NumbersOf(const std::vector<bool>& declined) {
  std::vector<int32_t> numbers;
  int32_t kept = 0;
  for (const bool gone : declined) numbers.push_back(gone ? -1 : kept++);
  return numbers;
}

int32_t NumberOf(const std::vector<int32_t>& numbers, int32_t instance) {
  return instance >= 0 && instance < Length(numbers) ? At(numbers, instance) : -1;
}

// Groups that only others knew go; the rest are numbered anew.
void KeepGroups(Trace& trace, const std::vector<int32_t>& numbers) {
  std::vector<int32_t> renumbered;
  std::vector<GroupInfo> kept;
  for (GroupInfo& group : trace.groups) {
    const int32_t number = NumberOf(numbers, group.instance);
    renumbered.push_back(number < 0 ? -1 : Length(kept));
    if (number < 0) continue;
    group.instance = number;
    kept.push_back(std::move(group));
  }
  trace.groups = std::move(kept);
  for (Event& event : trace.events) {
    for (int32_t* group : {&event.group, &event.parent}) {
      if (*group >= 0) *group = At(renumbered, *group);
    }
  }
}

OthersAlone Alone(const Run& run, const std::vector<bool>& declined) {
  const std::vector<int32_t> numbers = NumbersOf(declined);
  OthersAlone others{*run.spec, run, {}};
  others.c.instances.clear();
  others.run.oracles.clear();
  for (size_t i = 0; i < declined.size(); ++i) {
    if (declined[i]) continue;
    others.c.instances.push_back(run.spec->instances[i]);
    if (i < run.oracles.size()) others.run.oracles.push_back(run.oracles[i]);
  }
  for (Trace& trace : others.run.traces) {
    std::vector<Event> kept;
    std::vector<int64_t>& rows = others.rows.emplace_back();
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const int32_t number = NumberOf(numbers, trace.events[i].instance);
      if (number < 0) continue;
      kept.push_back(trace.events[i]);
      kept.back().instance = static_cast<uint16_t>(number);
      rows.push_back(static_cast<int64_t>(i));
    }
    trace.events = std::move(kept);
    KeepGroups(trace, numbers);
  }
  for (EngineOutcome& outcome : others.run.outcomes) {
    if (outcome.kind == EngineOutcome::Kind::kUnsupported) outcome = {};
  }
  return others;
}

}  // namespace

CheckResult CheckDeclined(const Run& run) {
  const std::vector<bool> declined = DeclinedInCreate(run);
  const auto runs = std::count(declined.begin(), declined.end(), false);
  if (runs == static_cast<std::ptrdiff_t>(declined.size())) return CheckAll(run);
  CheckResult result = CheckAll({nullptr, run.traces, {}, {}, {}});
  result.Merge(CheckRobustness(run));
  if (runs == 0) return result;
  OthersAlone others = Alone(run, declined);
  others.run.spec = &others.c;
  for (Finding& finding : CheckAll(others.run).findings) {
    for (int64_t* event : {&finding.event, &finding.begins}) {
      if (finding.rank >= 0 && *event >= 0) *event = At(At(others.rows, finding.rank), *event);
    }
    const bool told = std::any_of(result.findings.begin(), result.findings.end(),
                                  [&](const Finding& other) { return Same(finding, other); });
    if (!told) result.findings.push_back(std::move(finding));
  }
  return result;
}

}  // namespace shardproof
