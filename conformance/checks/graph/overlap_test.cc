#include <gtest/gtest.h>

#include "conformance/checks/graph/cost_model.h"
#include "conformance/checks/graph/overlap_check.h"
#include "conformance/checks/program/lowered.h"
#include "conformance/checks/testing/shown.h"
#include "conformance/common/at.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

// A step of a sharded engine with four layers on two ranks: gathers on one stream, compute on
// another, reductions on a third, and what the knobs below leave out or add.
struct Shape {
  bool gather_waits_for_compute = false;     // each gather waits for the compute before it
  bool compute_waits_for_reduction = false;  // each compute waits for the reduction before it
  bool twin = true;
  bool gather_waits_for_reduction = false;
  int world = 2;
  std::vector<int32_t> ranks = {0, 1};  // who reduces and gathers
  int labelled = -1;  // as this module, and for something else: each collective; -1: as what it is
};

void Order(TraceBuilder& t, int from, int to) {
  const int event = t.EventCreate();
  t.Record(event, from);
  t.Wait(event, to);
}

Trace StepOf(int rank, const Shape& shape) {
  TraceBuilder t(rank, shape.world);
  const int dp = t.Group("dp_cp", shape.ranks),
            twin = shape.twin ? t.Group("dp_cp_ag", shape.ranks) : dp;
  const int compute = t.Stream("compute"), gather = t.Stream("gather"), reduce = t.Stream("reduce");
  t.CallBegin("create");
  t.CallEnd("create");
  t.CallBegin("train_step", 0);
  for (int layer = 0; layer < 4; ++layer) {
    if (shape.gather_waits_for_compute) Order(t, compute, gather);
    if (shape.gather_waits_for_reduction) Order(t, reduce, gather);
    const bool honest = shape.labelled < 0;
    const int module = honest ? layer : shape.labelled;
    t.Collective(SPF_ALL_GATHER, twin, gather, 8, {},
                 {.label = {honest ? SPF_FOR_PARAM_FULL : SPF_FOR_OTHER, module, 0}});
    Order(t, gather, compute);
    t.Compute(compute, layer, SPF_BWD, 0, {});
    Order(t, compute, reduce);
    t.Collective(SPF_REDUCE_SCATTER, dp, reduce, 8, {},
                 {.label = {honest ? SPF_FOR_GRAD : SPF_FOR_CHECKPOINT, module, 0}});
    if (shape.compute_waits_for_reduction) Order(t, reduce, compute);
  }
  t.CallEnd("train_step", 0);
  return t.Done();
}

std::vector<Trace> Step(const Shape& shape) { return {StepOf(0, shape), StepOf(1, shape)}; }

Case FullySharded() {
  Case c;
  c.world = 2;
  c.instances[0].strategy = ShardingStrategy::kOptimGradsParams;
  c.instances[0].twin = GatherTwin::kGiven;
  return c;
}

std::set<std::string> Found(const CheckResult& result) {
  Show(result);
  std::set<std::string> ids;
  for (const Finding& finding : result.findings) ids.insert(finding.requirement);
  return ids;
}
using Ids = std::set<std::string>;

// What the collectives of StepOf carried: a layer each.
std::vector<BroughtByEvent> LayersBrought(const std::vector<Trace>& traces) {
  std::vector<BroughtByEvent> brought;
  for (const Trace& trace : traces) {
    BroughtByEvent& of = brought.emplace_back();
    for (int64_t i = 0, n = 0; i < Length(trace.events); ++i) {
      if (At(trace.events, i).kind != EventKind::kCollective) continue;
      const bool gather = n % 2 == 0;
      of[i] = {gather, !gather, static_cast<int32_t>(n++ / 2), false};
    }
  }
  return brought;
}

TEST(Overlap, AnEngineThatOverlapsPasses) {
  const CheckResult result = Shown(CheckOverlap(FullySharded(), Step({})));
  EXPECT_EQ(Found(result), Ids{});
  EXPECT_EQ(result.judged, (Ids{"GE-12", "GE-13", "GE-14"}));
  ASSERT_FALSE(result.notes.empty());
  EXPECT_NE(result.notes[0].find("6 of 8 gathers"), std::string::npos) << result.notes[0];
}

TEST(Overlap, GathersThatWaitForTheComputeBeforeThemCannotHide) {
  EXPECT_EQ(Found(CheckOverlap(FullySharded(), Step({.gather_waits_for_compute = true}))),
            Ids{"GE-12"});
}

// Where collectives take turns, compute waits for reductions by way of its next sum over tp.
TEST(Overlap, ReductionsThatTakeTurnsWithSumsOverTpNeedNotHide) {
  const Shape awaited{.compute_waits_for_reduction = true, .twin = false};
  Case c = FullySharded();
  c.instances[0].twin = GatherTwin::kNone;
  c.instances[0].schedule = CommSchedule::kOneCommunicator;
  EXPECT_TRUE(Found(CheckOverlap(c, Step(awaited))).contains("GE-13"));
  c.instances[0].tensor_parallel = true;
  c.instances[0].tp = 2;
  const CheckResult result = CheckOverlap(c, Step(awaited));
  EXPECT_FALSE(Found(result).contains("GE-13"));
  EXPECT_FALSE(result.judged.contains("GE-13"));
}

// Four ranks with tp = 2: these two replicate the norms, and sum their gradients behind backward.
TEST(Overlap, SumsOverTensorParallelRanksAreNoReductionsOfUnits) {
  Case c = FullySharded();
  c.world = 4;
  c.instances[0].tensor_parallel = true;
  c.instances[0].tp = 2;
  const auto judged = [&](const std::vector<std::vector<int32_t>>& groups) {
    std::vector<Trace> traces;
    for (int rank = 0; rank < 4; ++rank)
      traces.push_back(StepOf(
          rank, {.compute_waits_for_reduction = true, .world = 4, .ranks = At(groups, rank)}));
    return CheckOverlap(c, traces);
  };
  EXPECT_TRUE(Found(judged({{0, 2}, {1, 3}, {0, 2}, {1, 3}})).contains("GE-13"));
  const CheckResult sums = judged({{0, 1}, {0, 1}, {2, 3}, {2, 3}});
  EXPECT_FALSE(Found(sums).contains("GE-13"));
  EXPECT_FALSE(sums.judged.contains("GE-13"));
}

TEST(Overlap, ReductionsThatComputeWaitsForCannotHide) {
  EXPECT_TRUE(Found(CheckOverlap(FullySharded(), Step({.compute_waits_for_reduction = true})))
                  .contains("GE-13"));
}

TEST(Overlap, GathersBehindReductionsMakeTheTwinUseless) {
  EXPECT_TRUE(Found(CheckOverlap(FullySharded(), Step({.gather_waits_for_reduction = true})))
                  .contains("GE-14"));
}

TEST(Overlap, GathersOnTheReducingCommunicatorMakeTheTwinUseless) {
  EXPECT_TRUE(Found(CheckOverlap(FullySharded(), Step({.twin = false}))).contains("GE-14"));
}

// Four ranks that shard over two and once more over the other two: in a step units are gathered
// over the inner group, or not, and shards are filled up over the outer one, after all reductions.
Trace OuterStepOf(int rank, bool gathers, bool waits) {
  TraceBuilder t(rank, 4);
  const int base = rank / 2 * 2, side = rank % 2;
  const int inner = t.Group("intra_dp_cp", {base, base + 1}, base == 0 ? "intra0" : "intra2"),
            outer = t.Group("inter_dp_cp", {side, side + 2}, side == 0 ? "inter0" : "inter1"),
            twin = t.Group("dp_cp_ag", {base, base + 1}, base == 0 ? "twin0" : "twin2");
  const int compute = t.Stream("compute"), gather = t.Stream("gather"), reduce = t.Stream("reduce");
  t.CallBegin("create");
  t.CallEnd("create");
  t.CallBegin("train_step", 0);
  for (int layer = 0; layer < 4; ++layer) {
    if (waits) Order(t, compute, gather);
    if (waits) Order(t, reduce, gather);
    if (gathers)
      t.Collective(SPF_ALL_GATHER, twin, gather, 8, {}, {.label = {SPF_FOR_PARAM_FULL, layer, 0}});
    Order(t, gather, compute);
    t.Compute(compute, layer, SPF_BWD, 0, {});
    Order(t, compute, reduce);
    t.Collective(SPF_REDUCE_SCATTER, inner, reduce, 8, {}, {.label = {SPF_FOR_GRAD, layer, 0}});
  }
  Order(t, reduce, compute);
  Order(t, compute, gather);
  for (int layer = 0; layer < 4; ++layer)
    t.Collective(SPF_ALL_GATHER, outer, gather, 8, {}, {.label = {SPF_FOR_PARAM_SHARD, layer, 0}});
  t.CallEnd("train_step", 0);
  return t.Done();
}

Ids FoundWithOuterShards(bool gathers, bool waits, bool outer_shards = true) {
  Case c = FullySharded();
  c.world = c.instances[0].span = 4;
  if (outer_shards) {
    c.instances[0].outer = 2;
    c.instances[0].outer_strategy = OuterStrategy::kOptim;
  }
  std::vector<Trace> traces;
  for (int rank = 0; rank < 4; ++rank) traces.push_back(OuterStepOf(rank, gathers, waits));
  return Found(CheckOverlap(c, traces));
}

TEST(Overlap, GathersOfTheOuterGroupFollowTheReductions) {
  EXPECT_EQ(FoundWithOuterShards(true, false), Ids{});
  EXPECT_EQ(FoundWithOuterShards(false, false), Ids{}) << "there is no other gather";
}

TEST(Overlap, GathersOfUnitsThatFollowTheReductionsAreFoundBesideThoseOfTheOuterGroup) {
  const Ids found = FoundWithOuterShards(true, true);
  EXPECT_TRUE(found.contains("GE-12") && found.contains("GE-14"));
  EXPECT_TRUE(FoundWithOuterShards(false, false, false).contains("GE-12"))
      << "without outer sharding any gather should hide";
}

TEST(Overlap, ACaseThatDoesNotAskForItIsNotJudged) {
  Case c;
  c.world = 2;
  EXPECT_TRUE(CheckOverlap(c, Step({.gather_waits_for_compute = true})).judged.empty());
}

Case WithOptimizerSharded(bool ahead) {
  Case c;
  c.world = 2;
  c.instances[0].strategy = ShardingStrategy::kOptim;
  c.instances[0].overlap_param_gather = ahead;
  return c;
}

TEST(Overlap, GathersOfTheNewWeightsHideWhereTheKnobLaunchesThemAhead) {
  EXPECT_EQ(Found(CheckOverlap(WithOptimizerSharded(true), Step({}))), Ids{});
  const auto behind = Step({.gather_waits_for_compute = true});
  EXPECT_EQ(Found(CheckOverlap(WithOptimizerSharded(true), behind)), Ids{"GE-12"});
  EXPECT_EQ(Found(CheckOverlap(WithOptimizerSharded(false), behind)), Ids{});
}

// Three steps of a layer-wise engine that reduces so many buckets a step, each in a new buffer of
// another dtype, after all compute.
Trace BucketsOf(int rank, int buckets) {
  TraceBuilder t(rank, 2);
  const int dp = t.Group("dp_cp", {0, 1});
  const int compute = t.Stream("compute"), reduce = t.Stream("reduce");
  t.CallBegin("create");
  t.CallEnd("create");
  for (int step = 0; step < 3; ++step) {
    t.CallBegin("train_step", step);
    for (int layer = 0; layer < 4; ++layer) t.Compute(compute, layer, SPF_BWD, 0, {});
    Order(t, compute, reduce);
    for (int bucket = 0; bucket < buckets; ++bucket) {
      const int wire = t.Alloc(reduce, 16);
      t.Collective(SPF_ALL_REDUCE, dp, reduce, 8, {Updates(wire, 0, 16)},
                   {.dtype = SPF_BF16, .label = {SPF_FOR_GRAD, 0, 0}});
      t.Free(reduce, wire);
    }
    Order(t, reduce, compute);
    t.CallEnd("train_step", step);
  }
  return t.Done();
}

TEST(Overlap, BucketsOfOneStepCountNotThoseOfAllSteps) {
  Case c = ParseId("w2.lw.ogr.wire16");
  const auto found = [&](int buckets) {
    return Found(CheckOverlap(c, std::vector<Trace>{BucketsOf(0, buckets), BucketsOf(1, buckets)}));
  };
  EXPECT_EQ(found(2), Ids{});
  EXPECT_EQ(found(3), Ids{"GE-13"});
}

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

// Labels are the engine's word: a false one hides nothing from the checks.
TEST(Overlap, WhatIsLabelledAsSomethingElseIsJudgedByItsBytes) {
  Case c = FullySharded();
  c.instances[0].overlap_param_gather = c.instances[0].overlap_grad_reduce = true;
  for (const bool waits : {false, true}) {
    const std::vector<Trace> run = Step(
        {.gather_waits_for_compute = waits, .compute_waits_for_reduction = waits, .labelled = 2});
    EXPECT_TRUE(CheckOverlap(c, run).judged.empty());
    const CheckResult result = CheckOverlap(c, run, LayersBrought(run));
    EXPECT_TRUE(result.judged.contains("GE-12") && result.judged.contains("GE-13"));
    EXPECT_EQ(Found(result), waits ? (Ids{"GE-12", "GE-13", "GE-14"}) : Ids{});
  }
}

}  // namespace
}  // namespace shardproof
