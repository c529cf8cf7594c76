// edges_test: is each synchronisation of a run either missed when it is gone, or proved to be
// implied by others?
#include <gtest/gtest.h>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "conformance/checks/graph/implied_edge.h"
#include "conformance/common/at.h"
#include "conformance/runner/lab/fault_lab.h"

namespace shardproof {
namespace {

constexpr int32_t kRank = 0;

struct Edge {
  std::string call;
  int64_t nth = 0;    // among the calls of that name
  int64_t event = 0;  // in the trace
};

std::vector<Edge> EdgesOf(const Trace& trace) {
  std::vector<Edge> edges;
  for (const char* call : {"event_wait", "event_sync", "stream_sync"}) {
    const std::vector<int64_t> events = EventsOfCall(trace, call);
    for (size_t n = 0; n < events.size(); ++n)
      edges.push_back({call, static_cast<int64_t>(n), events[n]});
  }
  return edges;
}

enum class Verdict { kFound, kImplied, kNothing, kNeither };

struct Judged {
  Verdict verdict = Verdict::kNeither;
  std::string text;
};

std::string Ids(const CheckResult& result) {
  std::set<std::string> ids;
  for (const Finding& finding : result.findings) ids.insert(finding.requirement);
  std::string text;
  for (const std::string& id : ids) text += (text.empty() ? "" : " ") + id;
  return text;
}

// A race, or what a race may have done to a value.
// Counts of rows that the host reads too early make all-to-alls that do not fit: matching is judged
// before races.
bool NamesTheLoss(const CheckResult& result, const std::string& call) {
  std::set<std::string> races = {"GE-05", "GE-06", "GE-07", "GE-11"};
  if (call == "event_sync") races.insert("GE-01");
  return std::any_of(result.findings.begin(), result.findings.end(),
                     [&](const Finding& finding) { return races.count(finding.requirement) > 0; });
}

// What it waits for when there is nothing to wait for is no edge: said, not skipped.
Judged JudgeDrop(const FaultLab& lab, const Edge& edge, const std::set<int64_t>& orders) {
  Fault fault;
  fault.call = edge.call;
  fault.nth = edge.nth;
  fault.rank = kRank;
  const CheckResult result = lab.JudgeFault(fault);
  if (NamesTheLoss(result, edge.call)) return {Verdict::kFound, Ids(result)};
  const std::string besides = result.findings.empty() ? "" : " [reported: " + Ids(result) + "]";
  const Event& event = At(lab.good_trace(kRank).events, edge.event);
  if (edge.call != "stream_sync" && !event.flag)
    return {Verdict::kNothing, "captured no record: orders nothing" + besides};
  if (orders.count(edge.event) == 0)
    return {Verdict::kNothing, "nothing was enqueued before it" + besides};
  const EdgeVerdict proof = JudgeEdge(lab.good().run.traces, {kRank, edge.event});
  const bool proved = proof.kind == EdgeVerdict::Kind::kImplied ||
                      proof.kind == EdgeVerdict::Kind::kUnused ||
                      proof.kind == EdgeVerdict::Kind::kCovered;
  return {proved && !proof.proof.empty() ? Verdict::kImplied : Verdict::kNeither,
          proof.proof + besides};
}

std::string StreamOf(const Trace& trace, const Event& event) {
  return event.stream < 0 ? "host" : At(trace.streams, event.stream);
}

class Edges : public testing::TestWithParam<const char*> {};

TEST_P(Edges, AreEachMissedOrProvedToBeImplied) {
  const Plugin plugin("builtin:reference");
  const FaultLab lab(GetParam(), plugin, testing::TempDir() + "edges");
  RunData good = lab.Run(std::nullopt, 1, TimingPolicy::kRandom);
  ASSERT_EQ(Ids(lab.Judge(good)), "") << "without a fault";
  const Trace& trace = lab.good_trace(kRank);
  std::set<int64_t> orders;
  for (const SyncEdge& edge : FindSyncEdges(lab.good().run.traces)) {
    if (edge.rank == kRank) orders.insert(edge.event);
  }
  std::map<Verdict, int> counts;
  const char* const words[] = {"found", "implied", "no edge", "NEITHER"};
  for (const Edge& edge : EdgesOf(trace)) {
    const Judged judged = JudgeDrop(lab, edge, orders);
    ++counts[judged.verdict];
    const Event& event = At(trace.events, edge.event);
    const std::string name = edge.call + ":" + std::to_string(edge.nth);
    std::cout << std::left << std::setw(16) << name << " #" << std::setw(5) << edge.event
              << std::setw(14) << StreamOf(trace, event) << std::setw(9)
              << words[static_cast<int>(judged.verdict)] << judged.text.substr(0, 300) << '\n';
    EXPECT_NE(judged.verdict, Verdict::kNeither)
        << GetParam() << " --fault " << name << ":drop@0: " << judged.text;
    orders.erase(edge.event);
  }
  EXPECT_TRUE(orders.empty()) << orders.size() << " synchronisations were not tried";
  EXPECT_GT(counts[Verdict::kFound], 10);
  for (const auto& [verdict, n] : counts)
    std::cout << n << ' ' << words[static_cast<int>(verdict)] << '\n';
}

INSTANTIATE_TEST_SUITE_P(Cases, Edges,
                         testing::Values("w4.zero3.n2.twin.k2.do=tt",
                                         "w4.zero3.n2.hfsdp.twin.clip1.do=ts",
                                         "w4.zero3.twin.ep2.k2.do=t.moe4.shared.1f1b.dw",
                                         "w4.lw.k2.ogr.opg.bs1000.adamw.do=tt",
                                         "w4.lw.ogr.opg.bs1000.muon.do=tt.bcast.gradbuf",
                                         "w4.lw.ogr.opg.bs1000.adamw.norm.do=tt.aligned"));

}  // namespace
}  // namespace shardproof
