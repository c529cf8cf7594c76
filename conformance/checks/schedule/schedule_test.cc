// Each requirement of the family against a good run, and against one that breaks it.
#include "conformance/checks/schedule/schedule.h"

#include <gtest/gtest.h>

#include <set>

#include "conformance/checks/schedule/asked.h"
#include "conformance/checks/testing/mini_schedule.h"
#include "conformance/checks/testing/shown.h"

namespace shardproof {
namespace {

using Edit = std::function<void(InstanceSpec&)>;

std::string First(const CheckResult& result) {
  if (result.findings.empty()) return "";
  const Finding& f = result.findings[0];
  return f.requirement + " rank " + std::to_string(f.rank) + " event " + std::to_string(f.event) +
         " " + f.operation + "\n  expected " + f.expected + "\n  seen " + f.seen + "\n  " +
         f.message;
}

CheckResult Checked(const ScheduleFaults& faults = {}, const Edit& edit = {}, int32_t world = 4,
                    int32_t ep = 2, bool marks = true) {
  ScheduleRun made = RunSchedule(ScheduleCase(world, ep, edit), faults);
  for (Trace& trace : made.run.traces) {
    if (!marks) std::erase_if(trace.events, [](auto& e) { return e.kind == EventKind::kMark; });
  }
  const Analysis a(made.run);
  EXPECT_TRUE(a.has_flow()) << a.flow_why();
  return Shown(CheckSchedule(a));
}
bool Finds(const char* id, const ScheduleFaults& faults, const Edit& edit = {}, int32_t world = 4,
           int32_t ep = 2) {
  const CheckResult result = Checked(faults, edit, world, ep);
  for (const Finding& finding : result.findings) {
    if (finding.requirement == id) return true;
  }
  ADD_FAILURE() << "found only: " << FoundIn(result);
  return false;
}
void Delay(InstanceSpec& spec) { spec.delay_wgrad = true; }
void Three(InstanceSpec& spec) {
  spec.model.layers = 3;
  spec.microbatches = 3;
}
void Zero2(InstanceSpec& spec) { spec.strategy = ShardingStrategy::kOptimGrads; }
void Empty(InstanceSpec& spec) { spec.model.moe.skew = "rank"; }

// ------------------------------------------------------------------ good runs

struct Good {
  const char* name;
  Edit edit;
  int32_t world = 4, ep = 2;
};

class GoodRuns : public testing::TestWithParam<Good> {};

TEST_P(GoodRuns, HaveNoFinding) {
  const CheckResult result = Checked({}, GetParam().edit, GetParam().world, GetParam().ep);
  EXPECT_EQ(FoundIn(result), "") << First(result);
  EXPECT_TRUE(result.not_checkable.empty());
  EXPECT_TRUE(result.judged.contains("EP-01"));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, GoodRuns,
    testing::Values(Good{"plain", {}}, Good{"delay", Delay}, Good{"three", Three},
                    Good{"three_delay", [](InstanceSpec& s) { Three(s), Delay(s); }},
                    Good{"early", [](InstanceSpec& s) { s.early_release = true; }},
                    Good{"early_odd_delay",
                         [](InstanceSpec& s) { Three(s), Delay(s), s.early_release = true; }},
                    Good{"early_odd", [](InstanceSpec& s) { Three(s), s.early_release = true; }},
                    Good{"zero2", Zero2},
                    Good{"zero2_delay", [](InstanceSpec& s) { Zero2(s), Delay(s); }},
                    Good{"one_microbatch", [](InstanceSpec& s) { s.microbatches = 1; }},
                    Good{"mixed", [](InstanceSpec& s) { Three(s), s.model.moe.layers = "odd"; }},
                    Good{"mixed_delay",
                         [](InstanceSpec& s) { Three(s), Delay(s), s.model.moe.layers = "even"; }},
                    Good{"mtp_shared",
                         [](InstanceSpec& s) { s.model.mtp = s.model.moe.shared = true; }},
                    Good{"mtp_eval", [](InstanceSpec& s) { s.model.mtp = true, s.script = "tet"; }},
                    Good{"empty", Empty}, Good{"eval", [](InstanceSpec& s) { s.script = "tet"; }},
                    Good{"ep_is_dp", {}, 4, 4},
                    Good{"optim", [](InstanceSpec& s) { s.strategy = ShardingStrategy::kOptim; }}),
    [](const auto& row) { return std::string(row.param.name); });

TEST_P(GoodRuns, AskForWhatTheyJudge) {
  const Case c = ScheduleCase(GetParam().world, GetParam().ep, GetParam().edit);
  const CheckResult result = Checked({}, GetParam().edit, GetParam().world, GetParam().ep);
  EXPECT_EQ(schedule::RowsAskedFor(InstanceFacts(c.instances[0], c.world), c.world), result.judged);
}

TEST(Schedule, JudgesAllItsRows) {
  std::set<std::string> judged;
  for (const Edit& edit : std::vector<Edit>{
           [](InstanceSpec& s) { Three(s), Delay(s), s.script = "tet"; }, {}, Three}) {
    const CheckResult result = Checked({}, edit);
    judged.insert(result.judged.begin(), result.judged.end());
  }
  for (int id = 1; id <= 38; ++id) {
    const bool cited =
        id == 22 || id == 23 || (id >= 30 && id <= 32) || id == 34 || id == 35 || id == 37;
    const std::string name = std::string(id < 10 ? "EP-0" : "EP-") + std::to_string(id);
    EXPECT_TRUE(cited || judged.contains(name)) << name;
  }
}

// ------------------------------------------------------------------ order

TEST(Schedule, APieceIsForgotten) { EXPECT_TRUE(Finds("EP-01", {.skip_weights = true}, Delay)); }
TEST(Schedule, ExpertsAfterTheDispatch) {
  EXPECT_TRUE(Finds("EP-02", {.experts_before_dispatch_swapped = true}));
}
// Without hooks an engine claims nobody's order: what no data and no overlap orders is free.
CheckResult Unmarked(const ScheduleFaults& faults, const Edit& edit = {}) {
  return Checked(faults, edit, 4, 2, false);
}
TEST(Schedule, AnotherOrderIsFoundOnlyWhereHooksClaimThisOne) {
  for (const ScheduleFaults& other : std::vector<ScheduleFaults>{
           {.experts_before_dispatch_swapped = true}, {.forward_first = true}}) {
    EXPECT_TRUE(Finds("EP-02", other));
    for (const Edit& edit : {Edit(), Edit(Three), Edit(Delay), Edit(Zero2)})
      EXPECT_EQ(FoundIn(Unmarked(other, edit)), "") << First(Unmarked(other, edit));
  }
}
TEST(Schedule, AnAllToAllWithNothingToHideBehind) {
  const std::string found = FoundIn(Unmarked({.experts_first = true}));
  EXPECT_NE(found.find("EP-02"), std::string::npos) << found;
}
TEST(Schedule, OneAfterTheOther) { EXPECT_TRUE(Finds("EP-03", {.one_after_the_other = true})); }
TEST(Schedule, OtherPairs) { EXPECT_TRUE(Finds("EP-04", {.shifted_pairs = true}, Three)); }
TEST(Schedule, ExpertsOnTheStreamOfAllToAlls) {
  EXPECT_TRUE(Finds("EP-05", {.experts_on_a2a = true}));
}
TEST(Schedule, WeightsInTheChain) {
  EXPECT_TRUE(Finds("EP-06", {.weights_in_chain = true}, Delay));
}
TEST(Schedule, WeightsMayBeInTheChainWhereTheHostLooksAtGradients) {
  const Edit edit = [](InstanceSpec& s) { Delay(s), s.check_for_nan = true; };
  EXPECT_EQ(FoundIn(Checked({.weights_in_chain = true}, edit, 4, 2)), "");
}
TEST(Schedule, NoWaitBeforeDispatch) {
  EXPECT_TRUE(Finds("EP-06", {.no_wait_before_dispatch = true}));
}
TEST(Schedule, WeightsApartWithoutDelay) { EXPECT_TRUE(Finds("EP-38", {.weights_apart = true})); }
TEST(Schedule, MicrobatchesMixedWithoutOverlap) {
  ScheduleRun made = RunSchedule(ScheduleCase(4, 2));
  made.spec->instances[0].overlap_moe = false;
  const Analysis a(made.run);
  EXPECT_EQ(FoundIn(CheckSchedule(a)), "EP-38");
}
TEST(Schedule, SequentialWithoutOverlap) {
  ScheduleRun made = RunSchedule(ScheduleCase(4, 2, [](InstanceSpec& s) { s.microbatches = 1; }));
  made.spec->instances[0].overlap_moe = false;
  const Analysis a(made.run);
  const CheckResult result = CheckSchedule(a);
  EXPECT_TRUE(result.judged.contains("EP-38"));
  EXPECT_EQ(FoundIn(result), "") << First(result);
}
TEST(Schedule, NothingHides) { EXPECT_TRUE(Finds("EP-33", {.serial = true})); }
// All-to-alls then wait for gathers and reductions, and these for compute: some still hide, which
// is enough where collectives are to take turns.
TEST(Schedule, WhereCollectivesTakeTurnsSomeAllToAllsHide) {
  const auto in_turn = [](InstanceSpec& spec) {
    spec.schedule = CommSchedule::kOneCommunicator;
    spec.delay_wgrad = true;
  };
  EXPECT_TRUE(Finds("EP-33", {.in_turn = true}, Delay));
  const CheckResult result = Checked({.in_turn = true}, in_turn);
  EXPECT_EQ(FoundIn(result), "") << First(result);
  EXPECT_TRUE(result.judged.contains("EP-33"));
  EXPECT_TRUE(Finds("EP-33", {.serial = true, .each_waits = true, .in_turn = true}, in_turn));
}
// Replicas have no other collective between: each all-to-all has to hide.
TEST(Schedule, WhereNothingElseTakesTurnsEachAllToAllHides) {
  EXPECT_TRUE(Finds("EP-33", {.second_waits = true}, [](InstanceSpec& spec) {
    spec.schedule = CommSchedule::kOneCommunicator;
    spec.strategy = ShardingStrategy::kOptim;
  }));
}
// Before the dispatch delayed weight gradients stand behind a backward that may have collectives of
// its own, which take turns with the combine. Those of experts must leave room all the same.
TEST(Schedule, WhereAttentionTakesTurnsItsWeightGradientsMayWait) {
  using Found = std::set<std::string>;
  const auto beside = [](const ScheduleFaults& faults, const Edit& edit) {
    const auto in_turn = [&](InstanceSpec& spec) {
      spec.schedule = CommSchedule::kOneCommunicator;
      spec.strategy = ShardingStrategy::kOptim;
      Delay(spec);
      if (edit) edit(spec);
    };
    Found found;
    for (const Finding& finding : Checked(faults, in_turn).findings) {
      if (finding.requirement != "EP-33") continue;
      for (const char* weights : {"pd.dw", "mlp.dw"}) {
        if (finding.expected.find(weights) != std::string::npos) found.insert(weights);
      }
    }
    return found;
  };
  const Edit tp = [](InstanceSpec& s) { s.tp = s.etp = 2; };
  const Edit split = [](InstanceSpec& s) { s.tp = s.etp = 2, s.tensor_parallel = true; };
  const Edit parts = [](InstanceSpec& s) { s.cp = 2, s.context_parallel = true; };
  const ScheduleFaults serial{.serial = true}, in_chain{.weights_in_chain = true};
  EXPECT_EQ(beside(serial, {}), Found{"pd.dw"});
  EXPECT_EQ(beside(serial, tp), Found{"pd.dw"});
  EXPECT_EQ(beside(serial, split), Found{});
  EXPECT_EQ(beside(serial, parts), Found{});
  for (const Edit& edit : {Edit(), split, parts})
    EXPECT_EQ(beside(in_chain, edit), Found{"mlp.dw"});
}
TEST(Schedule, OneOfTwoAllToAllsCannotHide) {
  EXPECT_TRUE(Finds("EP-33", {.second_waits = true}));
  EXPECT_TRUE(Finds("EP-06", {.second_waits = true}, Delay));
}

// ------------------------------------------------------------------ gathered parameters

TEST(Schedule, ReleasedBeforeTheExperts) {
  EXPECT_TRUE(Finds("EP-09", {.release_before_experts = true},
                    [](InstanceSpec& s) { s.model.layers = 1; }));
}
TEST(Schedule, NeverReleased) { EXPECT_TRUE(Finds("EP-10", {.forget_release = true})); }
TEST(Schedule, ReleasedACombinedStepTooLate) {
  EXPECT_TRUE(Finds("EP-10", {.release_late = true}, Three));
}
TEST(Schedule, OneLayerIsNotReleased) {
  EXPECT_TRUE(Finds("EP-10", {.keep_top_layer = true}, Three));
}
TEST(Schedule, GatheredForNobody) { EXPECT_TRUE(Finds("EP-10", {.gather_unread = true})); }
TEST(Schedule, ReleasedOnTheExperts) { EXPECT_TRUE(Finds("EP-11", {.release_on_mlp = true})); }
TEST(Schedule, ReleasedBeforeDelayedWeights) {
  EXPECT_TRUE(Finds("EP-11", {.release_before_weights = true}, Delay));
}
TEST(Schedule, ReleasedWhileReadElsewhere) {
  EXPECT_TRUE(Finds("EP-12", {.release_on_gather_stream = true}));
}
TEST(Schedule, TheMiddleLayerIsTakenAway) {
  EXPECT_TRUE(Finds("EP-13", {.eager_release = true}, Three));
}
TEST(Schedule, OutsideUnitsGatheredAgain) {
  EXPECT_TRUE(Finds("EP-14", {.regather_outside = true}));
}
TEST(Schedule, GatheredInPieces) {
  const CheckResult result = Checked({.chunks = true});
  EXPECT_EQ(FoundIn(result), "") << First(result);
  EXPECT_TRUE(result.judged.contains("EP-14"));
  EXPECT_TRUE(Finds("EP-14", {.chunks = true, .regather_outside = true}));
}
TEST(Schedule, StaleWeights) { EXPECT_TRUE(Finds("EP-15", {.stale = true}, Zero2)); }
TEST(Schedule, OptimizerBeforeTheEnd) { EXPECT_TRUE(Finds("EP-16", {.early_optimizer = true})); }
TEST(Schedule, AllGatheredAtOnce) {
  EXPECT_TRUE(Finds("EP-17", {.gather_all = true}, [](InstanceSpec& s) { s.model.layers = 4; }));
}
TEST(Schedule, EvalLeavesParameters) {
  EXPECT_TRUE(Finds("EP-36", {.eval_keeps = true}, [](InstanceSpec& s) { s.script = "tet"; }));
}

TEST(Schedule, EvalLeavesActivations) {
  const Edit edit = [](InstanceSpec& s) { s.script = "tet"; };
  EXPECT_TRUE(Finds("EP-36", {.eval_leaks = true}, edit));
  EXPECT_TRUE(Finds("EP-36", {.eval_leaks = true},
                    [&](InstanceSpec& s) { edit(s), s.strategy = ShardingStrategy::kNoShard; }));
}

// ------------------------------------------------------------------ gradients

TEST(Schedule, NeverReduced) { EXPECT_TRUE(Finds("EP-18", {.skip_reduce = true})); }
TEST(Schedule, ReducedTwice) { EXPECT_TRUE(Finds("EP-18", {.reduce_twice = true})); }
TEST(Schedule, ReducedBeforeDelayedWeights) {
  EXPECT_TRUE(Finds("EP-19", {.reduce_before_weights = true}, Delay));
}
TEST(Schedule, ReducedWithoutWaiting) { EXPECT_TRUE(Finds("EP-19", {.reduce_unordered = true})); }
TEST(Schedule, ReducedACombinedStepTooLate) { EXPECT_TRUE(Finds("EP-20", {.reduce_late = true})); }
TEST(Schedule, RootHookTwice) { EXPECT_TRUE(Finds("EP-20", {.root_twice = true})); }
TEST(Schedule, ExpertsWithoutTokensLeftOut) {
  EXPECT_TRUE(Finds("EP-21", {.skip_empty = true}, Empty));
}
TEST(Schedule, GradientClearedWhileAddedTo) {
  EXPECT_TRUE(Finds("EP-24", {.clear_unordered = true}));
}
TEST(Schedule, GradientFreedWhileReduced) {
  EXPECT_TRUE(Finds("EP-24", {.free_gradient_early = true}));
}

// ------------------------------------------------------------------ activations

TEST(Schedule, ActivationsOutliveTheirMicrobatch) {
  EXPECT_TRUE(Finds("EP-07", {.keep_activations = true}));
}
TEST(Schedule, GivenBackWhileAnAllToAllReads) {
  EXPECT_TRUE(Finds("EP-07", {.free_on_compute = true}));
}
TEST(Schedule, AllLayersKept) { EXPECT_TRUE(Finds("EP-08", {.free_at_end = true}, Three)); }
TEST(Schedule, ActivationsLeak) { EXPECT_TRUE(Finds("EP-08", {.leak = true})); }

// ------------------------------------------------------------------ all-to-alls

TEST(Schedule, SplitsNotSwapped) { EXPECT_TRUE(Finds("EP-25", {.unswapped = true})); }
TEST(Schedule, PieceTooShort) { EXPECT_TRUE(Finds("EP-25", {.rank = 1, .short_piece = true})); }
TEST(Schedule, OtherOrderOnOneRank) {
  EXPECT_TRUE(Finds("EP-26", {.rank = 1, .probs_first = true}));
}
TEST(Schedule, SplitsOfAnotherMicrobatch) { EXPECT_TRUE(Finds("EP-27", {.other_splits = true})); }
TEST(Schedule, PackedByTheEngine) {
  for (const int kernel : {SPF_K_AXPBY, SPF_K_CUSTOM}) {
    const CheckResult result = Checked({.pack = kernel});
    EXPECT_EQ(FoundIn(result), "") << First(result);
    EXPECT_EQ(result.judged, Checked({}).judged);
    EXPECT_TRUE(Finds("EP-25", {.unswapped = true, .pack = kernel}));
  }
}
TEST(Schedule, WhatIsSentIsNotKnown) {
  const std::set<std::string> rows = {"EP-01", "EP-02", "EP-03", "EP-04", "EP-05",
                                      "EP-06", "EP-07", "EP-08", "EP-25", "EP-26",
                                      "EP-27", "EP-28", "EP-29", "EP-33", "EP-38"};
  for (const ScheduleFaults& faults :
       std::vector<ScheduleFaults>{{.pack = SPF_K_GEMM},
                                   {.pack = SPF_K_CUSTOM, .pack_mixed = true},
                                   {.send_freed = true}}) {
    const CheckResult result = Checked(faults);
    EXPECT_EQ(FoundIn(result), "") << First(result);
    EXPECT_EQ(NotCheckableIn(result), rows);
    for (const std::string& row : rows) EXPECT_FALSE(result.judged.contains(row)) << row;
  }
}
TEST(Schedule, LostRow) { EXPECT_TRUE(Finds("EP-28", {.lost_row = true})); }
TEST(Schedule, ExchangeWithoutRowsLeftOut) {
  const ScheduleRun made = RunSchedule(ScheduleCase(4, 2, Empty), {.skip_empty_exchange = true});
  const Analysis a(made.run);  // the members do not meet, so nothing can be followed to the end
  EXPECT_NE(FoundIn(CheckSchedule(a)).find("EP-29"), std::string::npos);
}

// ------------------------------------------------------------------ rows that other families judge

TEST(Schedule, CitesWhatOtherFamiliesFound) {
  const ScheduleRun made =
      RunSchedule(ScheduleCase(4, 2, [](InstanceSpec& s) { Delay(s), s.loss_scale_log2 = 3; }));
  const Analysis a(made.run);
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"FS-11", "EP-21"}, {"FS-20", "EP-22"}, {"FS-18", "EP-23"}, {"FS-05", "EP-23"},
      {"GE-23", "EP-37"}, {"FS-24", "EP-30"}, {"FS-24", "EP-31"}, {"FS-17", "EP-32"},
      {"GE-03", "EP-34"}, {"GE-01", "EP-35"}, {"GE-20", "EP-37"}};
  for (const auto& [of, row] : rows) {
    CheckResult result;
    result.judged.insert(of);
    EXPECT_TRUE(CiteForSchedule(a, result).judged.contains(row)) << of;
    EXPECT_EQ(FoundWithoutTrace(CiteForSchedule(a, result)), "");
    Finding finding;
    finding.requirement = of;
    result.findings.push_back(finding);
    EXPECT_NE(FoundWithoutTrace(CiteForSchedule(a, result)).find(row), std::string::npos) << of;
  }
}

TEST(Schedule, ScalesAreJudgedWhereThereAreAny) {
  const auto cites = [](const Edit& edit) {
    const ScheduleRun made = RunSchedule(ScheduleCase(2, 2, edit));
    const Analysis a(made.run);
    CheckResult result;
    result.judged.insert("FS-17");
    return CiteForSchedule(a, result).judged.contains("EP-32");
  };
  EXPECT_FALSE(cites({}));
  EXPECT_TRUE(cites([](InstanceSpec& s) { s.loss_scale_log2 = 3; }));
  EXPECT_TRUE(cites([](InstanceSpec& s) { s.model.moe.z_loss = true; }));
  EXPECT_TRUE(cites([](InstanceSpec& s) { s.model.moe.aux_loss = true; }));
}

}  // namespace
}  // namespace shardproof
