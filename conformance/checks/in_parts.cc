#include "conformance/checks/in_parts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/check_all.h"
#include "conformance/checks/completeness.h"
#include "conformance/checks/graph/deadlock.h"
#include "conformance/checks/robustness/robustness.h"

namespace shardproof {

namespace {

using Kind = NotCheckable::Kind;

std::map<std::string, std::string> MissingIn(const std::vector<NotCheckable>& rows) {
  std::map<std::string, std::string> missing;
  for (const NotCheckable& row : rows) {
    if (row.kind == Kind::kMissing) missing.emplace(row.requirement, row.why);
  }
  return missing;
}

// Kernels of two parts are never there together. Fewer words claim more.
KernelSlots Both(KernelSlots a, const KernelSlots& b) {
  if (b.profiles.size() > a.profiles.size()) a.profiles = b.profiles;
  a.spin = std::max(a.spin, b.spin);
  a.resident = std::max(a.resident, b.resident);
  a.exact = a.exact && b.exact;
  return a;
}

}  // namespace

PartSaid CheckPart(std::vector<Trace> part) {
  Run run;
  run.traces = std::move(part);
  PartSaid said;
  said.any_range = std::any_of(run.traces.begin(), run.traces.end(),
                               [](const Trace& trace) { return !trace.ranges.empty(); });
  said.result = CheckFamilies(Analysis(run));
  return said;
}

void PartsVerdict::Add(PartSaid said) {
  CheckResult& part = said.result;
  if (!whole_.empty()) return;
  if (!part.findings.empty()) {
    whole_ = "a part has a finding (" + part.findings.front().requirement + ")";
  } else if (!first_ && MissingIn(part.not_checkable) != MissingIn(all_.not_checkable)) {
    whole_ = "evidence is missing in one part and not in another";
  }
  any_range_ |= said.any_range;
  AddNotes(&part);
  AddRows(std::move(part.not_checkable));
  all_.judged.merge(part.judged);
  first_ = false;
}

// The deadlock check's note alone can be said of all parts from what is said of each.
void PartsVerdict::AddNotes(CheckResult* part) {
  std::vector<std::string>& notes = part->notes;
  if (part->slots) std::erase(notes, graph::DeadlockNote(*part->slots));
  if (!notes.empty() && whole_.empty()) whole_ = "a note is on one part: " + notes.front();
  if (!part->slots) return;
  all_.slots = all_.slots ? Both(*all_.slots, *part->slots) : *part->slots;
}

void PartsVerdict::AddRows(std::vector<NotCheckable> rows) {
  for (NotCheckable& row : rows) {
    const bool there = std::any_of(
        all_.not_checkable.begin(), all_.not_checkable.end(), [&](const NotCheckable& other) {
          return other.requirement == row.requirement && other.kind == row.kind;
        });
    if (!there) all_.not_checkable.push_back(std::move(row));
  }
}

CheckResult PartsVerdict::Conclude(std::vector<Trace> ends,
                                   std::vector<EngineOutcome> outcomes) && {
  Run run;
  run.traces = std::move(ends);
  run.outcomes = std::move(outcomes);
  const Analysis analysis(run);
  CheckResult result = CheckRobustness(analysis);
  if (all_.slots) all_.notes.push_back(graph::DeadlockNote(*all_.slots));
  result.Merge(std::move(all_));
  SettleWhatIsOpen(Shows{true, any_range_, ShownByEveryRun(analysis)}, result);
  return result;
}

}  // namespace shardproof
