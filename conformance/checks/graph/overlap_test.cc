#include <gtest/gtest.h>

#include "conformance/checks/graph/overlap_check.h"
#include "conformance/checks/graph/sharded_step.h"
#include "conformance/checks/testing/shown.h"
#include "conformance/common/at.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

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
  c.world = c.instances[0].span = 4;
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

// Backward's gathers then wait for outer gathers, which take turns with outer reductions.
TEST(Overlap, ReductionsNeedNotHideWhereOuterRanksFillUpCopiesForBackward) {
  Case c = FullySharded();
  c.world = c.instances[0].span = 4;
  c.instances[0].outer = 2;
  c.instances[0].outer_strategy = OuterStrategy::kOptim;
  c.instances[0].prefetch_limit_bytes = 0;
  std::vector<Trace> traces;
  for (int rank = 0; rank < 4; ++rank) {
    const int base = rank / 2 * 2;
    traces.push_back(
        StepOf(rank, {.compute_waits_for_reduction = true, .world = 4, .ranks = {base, base + 1}}));
  }
  EXPECT_TRUE(Found(CheckOverlap(c, traces)).contains("GE-13"));
  c.instances[0].backward_copies = true;
  EXPECT_FALSE(CheckOverlap(c, traces).judged.contains("GE-13"));
  c.instances[0].microbatches = 2;
  EXPECT_TRUE(Found(CheckOverlap(c, traces)).contains("GE-13")) << "they are filled up once";
}

TEST(Overlap, GathersBehindReductionsMakeTheTwinUseless) {
  EXPECT_TRUE(Found(CheckOverlap(FullySharded(), Step({.gather_waits_for_reduction = true})))
                  .contains("GE-14"));
}

// With a limit of what may be gathered ahead. Without one, gathers need not follow compute.
TEST(Overlap, GathersBehindComputeThatWaitsForTheReductionNeedNotOvertakeIt) {
  Case c = FullySharded();
  const Shape awaited{.gather_waits_for_compute = true, .compute_waits_for_reduction = true};
  EXPECT_TRUE(Found(CheckOverlap(c, Step(awaited))).contains("GE-14"));
  c.instances[0].prefetch_limit_bytes = 0;
  const CheckResult result = CheckOverlap(c, Step(awaited));
  EXPECT_FALSE(Found(result).contains("GE-14") || result.judged.contains("GE-14"));
  const Shape direct{.gather_waits_for_reduction = true};
  EXPECT_TRUE(Found(CheckOverlap(c, Step(direct))).contains("GE-14"));
}

TEST(Overlap, GathersOnTheReducingCommunicatorMakeTheTwinUseless) {
  EXPECT_TRUE(Found(CheckOverlap(FullySharded(), Step({.twin = false}))).contains("GE-14"));
}

struct Groups {
  int inner, outer, twin;
};

Groups OuterGroups(TraceBuilder& t, int rank) {
  const int base = rank / 2 * 2, side = rank % 2;
  const int inner = t.Group("intra_dp_cp", {base, base + 1}, base == 0 ? "intra0" : "intra2"),
            outer = t.Group("inter_dp_cp", {side, side + 2}, side == 0 ? "inter0" : "inter1"),
            twin = t.Group("dp_cp_ag", {base, base + 1}, base == 0 ? "twin0" : "twin2");
  return {inner, outer, twin};
}

// Four ranks that shard over two and once more over the other two: in a step units are gathered
// over the inner group, or not, and shards are filled up over the outer one, after all reductions.
Trace OuterStepOf(int rank, bool gathers, bool waits) {
  TraceBuilder t(rank, 4);
  const auto [inner, outer, twin] = OuterGroups(t, rank);
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

// As above, but shards are filled up in the step, all of them ahead or each just before it is
// gathered, or, kNext, before the one before it is, all in one block. Outer reductions take the
// same communicator, or, kApart, another one.
enum class Fills { kAhead, kEach, kNext, kApart };

Trace FilledUpStepOf(int rank, Fills fills) {
  TraceBuilder t(rank, 4);
  const auto [inner, outer, twin] = OuterGroups(t, rank);
  const int side = rank % 2,
            apart = t.Group("inter_dp_cp_ag", {side, side + 2}, side == 0 ? "ag0" : "ag1");
  const int compute = t.Stream("compute"), gather = t.Stream("gather"), reduce = t.Stream("reduce"),
            fill = t.Stream("fill");
  const int shards = t.Alloc(compute, 5 * 64);
  Order(t, compute, gather);
  Order(t, compute, fill);
  t.CallBegin("create");
  t.CallEnd("create");
  t.CallBegin("train_step", 0);
  const auto fill_up = [&](int layer) {
    t.Collective(SPF_ALL_GATHER, fills == Fills::kApart ? apart : outer, fill, 8,
                 {Writes(shards, layer * 64, 64), Reads(shards, layer * 64, 32)},
                 {.label = {SPF_FOR_PARAM_SHARD, layer, 0}});
  };
  for (int layer = 0; layer < 4 && fills == Fills::kAhead; ++layer) fill_up(layer);
  if (fills == Fills::kNext) fill_up(0);
  for (int layer = 0; layer < 4; ++layer) {
    if (fills != Fills::kAhead) fill_up(fills == Fills::kNext ? layer + 1 : layer);
    Order(t, fill, gather);
    if (fills != Fills::kEach) Order(t, reduce, gather);
    t.Collective(SPF_ALL_GATHER, twin, gather, 8, {Reads(shards, layer * 64, 64)},
                 {.label = {SPF_FOR_PARAM_FULL, layer, 0}});
    Order(t, gather, compute);
    t.Compute(compute, layer, SPF_BWD, 0, {});
    Order(t, compute, reduce);
    t.Collective(SPF_REDUCE_SCATTER, inner, reduce, 8, {}, {.label = {SPF_FOR_GRAD, layer, 0}});
    t.Collective(SPF_REDUCE_SCATTER, outer, reduce, 4, {},
                 {.label = {SPF_FOR_GRAD_SHARD, layer, 0}});
  }
  t.CallEnd("train_step", 0);
  return t.Done();
}

TEST(Overlap, GathersOfShardsThatOuterRanksFillUpBehindTheReductionNeedNotOvertakeIt) {
  Case c = FullySharded();
  c.world = c.instances[0].span = 4;
  c.instances[0].outer = 2;
  c.instances[0].outer_strategy = OuterStrategy::kOptim;
  const auto judged = [&](Fills fills) {
    std::vector<Trace> traces;
    for (int rank = 0; rank < 4; ++rank) traces.push_back(FilledUpStepOf(rank, fills));
    return CheckOverlap(c, traces);
  };
  const CheckResult result = judged(Fills::kEach);
  EXPECT_FALSE(Found(result).contains("GE-14") || result.judged.contains("GE-14"));
  EXPECT_TRUE(std::any_of(result.not_checkable.begin(), result.not_checkable.end(),
                          [](const NotCheckable& row) { return row.requirement == "GE-14"; }));
  EXPECT_TRUE(Found(judged(Fills::kAhead)).contains("GE-14")) << "they wait all the same";
  EXPECT_TRUE(Found(judged(Fills::kNext)).contains("GE-14")) << "its own was filled up ahead";
  EXPECT_TRUE(Found(judged(Fills::kApart)).contains("GE-14")) << "what fills it up does not wait";
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

// Beside each reduction, which compute waits for, goes one of scratch that says it is of gradients.
TEST(Overlap, WhatIsLabelledAsAReductionAndCarriesNoGradientIsNone) {
  Case c = FullySharded();
  c.instances[0].overlap_grad_reduce = true;
  const std::vector<Trace> run = Step({.compute_waits_for_reduction = true, .decoys = true});
  EXPECT_FALSE(Found(CheckOverlap(c, run)).contains("GE-13")) << "labels are all that is known";
  EXPECT_TRUE(Found(CheckOverlap(c, run, LayersBrought(run))).contains("GE-13"));
}

// One reduction of all gradients, as of a flat buffer: what was asked for is not passed over.
TEST(Overlap, WhereNothingCanHideItIsSaid) {
  Case c = FullySharded();
  c.instances[0].overlap_param_gather = c.instances[0].overlap_grad_reduce = true;
  const CheckResult result = CheckOverlap(c, Step({.labelled = 2}));
  EXPECT_EQ(result.judged, Ids{});
  Ids not_asked;
  for (const NotCheckable& row : result.not_checkable) {
    EXPECT_EQ(row.kind, NotCheckable::Kind::kNotAsked);
    not_asked.insert(row.requirement);
  }
  EXPECT_EQ(not_asked, (Ids{"GE-12", "GE-13"}));
}

}  // namespace
}  // namespace shardproof
