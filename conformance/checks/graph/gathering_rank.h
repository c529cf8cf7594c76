// gathering_rank.h: how does a test write a rank that gathers and computes, and see its races?
#pragma once
#include <string>
#include <vector>

#include "conformance/checks/graph/graph_checks.h"
#include "conformance/checks/testing/shown.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof::graph {

// Gathers into a block on one stream, computes with it on another.
struct GatheringRank {
  explicit GatheringRank(int rank, int world) : trace(rank, world) {
    std::vector<int32_t> all;
    for (int i = 0; i < world; ++i) all.push_back(i);
    dp = trace.Group("dp_cp", all);
    compute = trace.Stream("compute");
    comm = trace.Stream("comm");
  }
  void Gather(int block) { trace.Collective(SPF_ALL_GATHER, dp, comm, 8, {Writes(block, 0, 64)}); }
  void Use(int block) { trace.Compute(compute, 0, SPF_FWD, 0, {Reads(block, 16, 16)}); }
  // to waits for what was issued on from.
  void Order(int from, int to) {
    const int event = trace.EventCreate();
    trace.Record(event, from);
    trace.Wait(event, to);
  }
  TraceBuilder trace;
  int dp = 0, compute = 0, comm = 0;
};

using Ids = std::vector<std::string>;

inline Ids Found(const CheckResult& result) {
  Show(result);
  Ids ids;
  for (const Finding& finding : result.findings) ids.push_back(finding.requirement);
  return ids;
}

inline CheckResult Check(GatheringRank& rank) {
  return Shown(CheckRaces(std::vector<Trace>{rank.trace.Done()}));
}

}  // namespace shardproof::graph
