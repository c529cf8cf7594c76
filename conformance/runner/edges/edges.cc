#include "conformance/runner/edges/edges.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "conformance/checks/graph/implied_edge.h"
#include "conformance/common/at.h"
#include "conformance/runner/judge.h"

namespace shardproof {

namespace {

struct SyncCall {
  const char* call;
  EventKind kind;
};
constexpr SyncCall kSyncCalls[] = {{"event_wait", EventKind::kWait},
                                   {"event_sync", EventKind::kEventSync},
                                   {"stream_sync", EventKind::kStreamSync}};

std::set<std::string> Failures(const CheckResult& result) {
  const std::set<std::string> warnings = WarningsOf(result);
  std::set<std::string> ids;
  for (const Finding& finding : result.findings) {
    if (!warnings.contains(finding.requirement)) ids.insert(finding.requirement);
  }
  return ids;
}

std::string Joined(const std::set<std::string>& ids) {
  std::string text;
  for (const std::string& id : ids) text += (text.empty() ? "" : " ") + id;
  return text;
}

// A race, or what a race may have done to a value. Counts of rows that the host reads too early
// make all-to-alls that do not fit: matching is judged before races.
bool NamesTheLoss(const std::set<std::string>& failures, const std::string& call) {
  std::set<std::string> races = {"GE-05", "GE-06", "GE-07", "GE-11"};
  if (call == "event_sync") races.insert("GE-01");
  return std::any_of(failures.begin(), failures.end(),
                     [&](const std::string& id) { return races.contains(id); });
}

}  // namespace

const char* EdgeKindName(EdgeKind kind) {
  static constexpr const char* kNames[] = {"needed", "implied", "orders nothing", "not covered"};
  return kNames[static_cast<size_t>(kind)];
}

EdgeReport::EdgeReport(const Case& c, const RunCase& run, const SimRunOptions& options,
                       int32_t rank)
    : case_(c), options_(options), rank_(rank) {
  if (rank >= c.world) {
    throw std::invalid_argument("--rank " + std::to_string(rank) + ": the case has " +
                                std::to_string(c.world) + " ranks");
  }
  if (!c.before.empty())
    throw std::invalid_argument("case " + Id(c) + " has several legs: ask one of them");
  if (!c.illegal.empty())
    throw std::invalid_argument("case " + Id(c) + " is illegal: " + c.illegal);
  good_ = run(c, options_);
  const Verdict verdict = JudgeRun(c, good_.run);
  const std::set<std::string> failures = Failures(verdict.result);
  if (!failures.empty())
    throw std::invalid_argument("case " + Id(c) + " fails as it is, by " + Joined(failures) +
                                ": mend that first");
  if (!IsGood(verdict))
    throw std::invalid_argument("case " + Id(c) + " cannot be judged: " + verdict.reason);
  FindEdges();
}

void EdgeReport::FindEdges() {
  for (const SyncEdge& edge : FindSyncEdges(good_.run.traces)) {
    if (edge.rank == rank_) orders_.insert(edge.event);
  }
  const Trace& trace = At(good_.run.traces, rank_);
  untried_ = orders_.size();
  for (const SyncCall& row : kSyncCalls) {
    int64_t nth = 0;
    for (int64_t i = 0; i < Length(trace.events); ++i) {
      const Event& event = At(trace.events, i);
      if (event.kind != row.kind || event.instance != 0) continue;
      const std::string stream = event.stream < 0 ? "host" : At(trace.streams, event.stream);
      edges_.push_back({row.call, nth++, i, stream, EdgeKind::kNotCovered, ""});
      if (orders_.contains(i)) --untried_;
    }
  }
}

EdgeRow EdgeReport::Judge(size_t place, const RunCase& run) const {
  EdgeRow row = edges_.at(place);
  SimRunOptions without = options_;
  without.rank.folder += "/" + std::to_string(place);
  without.trace_folder.clear();
  without.rank.fault.emplace();
  without.rank.fault->call = row.call;
  without.rank.fault->nth = row.nth;
  without.rank.fault->rank = rank_;
  const std::set<std::string> failures = Failures(JudgeRun(case_, run(case_, without).run).result);
  if (NamesTheLoss(failures, row.call)) {
    row.kind = EdgeKind::kNeeded;
    row.text = Joined(failures);
    return row;
  }
  const std::string besides = failures.empty() ? "" : " [found: " + Joined(failures) + "]";
  const Event& event = At(At(good_.run.traces, rank_).events, row.event);
  const bool waits = row.call == "stream_sync" || event.flag;
  // What waits for nothing is no edge: told, not skipped.
  if (!waits || !orders_.contains(row.event)) {
    row.kind = EdgeKind::kOrdersNothing;
    row.text = (waits ? "nothing was enqueued before it" : "its event was not recorded before it") +
               besides;
    return row;
  }
  const EdgeVerdict proof = JudgeEdge(good_.run.traces, {rank_, row.event});
  const bool proved = proof.kind == EdgeVerdict::Kind::kImplied ||
                      proof.kind == EdgeVerdict::Kind::kUnused ||
                      proof.kind == EdgeVerdict::Kind::kCovered;
  if (proved && !proof.proof.empty()) row.kind = EdgeKind::kImplied;
  row.text = proof.proof + besides;
  return row;
}

}  // namespace shardproof
