// The cost model, and what may run beside what.
#include "conformance/checks/graph/cost_model.h"

#include <gtest/gtest.h>

#include "conformance/checks/graph/sharded_step.h"
#include "conformance/checks/program/lowered.h"
#include "conformance/checks/testing/shown.h"
#include "conformance/common/at.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

TEST(MayOrder, AGatherAheadIsUnorderedWithTheComputeBeforeItOnly) {
  const std::vector<Trace> traces = Step({});
  const graph::Program program = graph::Lower(traces);
  graph::MayOrder order(program);
  std::vector<uint32_t> gathers, computes;
  for (uint32_t e = 0; e < program.first_entry[1]; ++e) {
    const Event& event = program.event(program.entries[e]);
    if (event.kind == EventKind::kCompute) computes.push_back(e);
    if (event.kind == EventKind::kCollective && event.collective == SPF_ALL_GATHER)
      gathers.push_back(e);
  }
  EXPECT_TRUE(order.Unordered(gathers[1], computes[0]));
  EXPECT_FALSE(order.Unordered(gathers[1], computes[1]));
  EXPECT_TRUE(order.Precedes(gathers[1], computes[1]));
  EXPECT_EQ(graph::Lowered(traces).EntryAt(0, program.entries[computes[2]].event), computes[2]);
}

TEST(MayOrder, AGatherCannotCompleteWithoutAReductionThatOnlyItsPeerWaitsFor) {
  for (const bool peer_waits : {false, true}) {
    Shape peer;
    peer.gather_waits_for_reduction = peer_waits;
    const std::vector<Trace> traces = {StepOf(0, {}), StepOf(1, peer)};
    const graph::Program program = graph::Lower(traces);
    graph::MayOrder order(program);
    std::vector<uint32_t> gathers, reductions;
    for (uint32_t e = 0; e < program.first_entry[1]; ++e) {
      const Event& event = program.event(program.entries[e]);
      if (event.kind != EventKind::kCollective) continue;
      (event.collective == SPF_ALL_GATHER ? gathers : reductions).push_back(e);
    }
    EXPECT_EQ(order.CompletesWithout(gathers[2], reductions[1]), !peer_waits);
    EXPECT_TRUE(order.CompletesWithout(gathers[2], reductions[2]));
  }
}

double DurationUs(const Trace&, const Event& event) {
  return event.kind == EventKind::kCompute ? 10 : event.kind == EventKind::kCollective ? 4 : 0;
}

TEST(CostModel, OverlapHidesCommunicationAndOrderExposesIt) {
  graph::CostModel model;
  model.duration_us = DurationUs;
  const std::vector<Trace> overlapped = Step({}),
                           ordered = Step({.gather_waits_for_compute = true});
  const graph::CostedRun fast = Simulate(graph::Lower(overlapped), model);
  const graph::CostedRun slow = Simulate(graph::Lower(ordered), model);
  EXPECT_DOUBLE_EQ(fast.total_us, 4 + 4 * 10 + 4);  // first gather, four layers, last reduction
  EXPECT_DOUBLE_EQ(fast.ranks[0].compute_us, 40);
  EXPECT_DOUBLE_EQ(fast.ranks[0].exposed_us, 8);
  EXPECT_DOUBLE_EQ(slow.total_us, 4 * (4 + 10) + 4);
  EXPECT_DOUBLE_EQ(slow.ranks[1].exposed_us, 4 * 4 + 4);
}

TEST(CostModel, AMemberThatStartsLateHoldsAllOthers) {
  std::vector<Trace> traces;
  for (int rank = 0; rank < 2; ++rank) {
    TraceBuilder t(rank, 2);
    const int dp = t.Group("dp", {0, 1}), stream = t.Stream("compute");
    if (rank == 1) t.Compute(stream, 0, SPF_FWD, 0, {});
    t.Collective(SPF_ALL_REDUCE, dp, stream, 8);
    traces.push_back(t.Done());
  }
  graph::CostModel model;
  model.duration_us = DurationUs;
  const graph::CostedRun run = Simulate(graph::Lower(traces), model);
  EXPECT_DOUBLE_EQ(run.total_us, 14);
  EXPECT_DOUBLE_EQ(run.ranks[0].exposed_us, 14);
  EXPECT_DOUBLE_EQ(run.ranks[1].exposed_us, 4);
}

}  // namespace
}  // namespace shardproof
