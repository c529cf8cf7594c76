// Each requirement of the family against good runs, and against one that breaks it.
#include "conformance/checks/layer_wise/layer_wise.h"

#include <algorithm>

#include "conformance/checks/layer_wise/mini_checked.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

// ------------------------------------------------------------------ good runs

struct Good {
  const char* name;
  Edit edit;
  int32_t world = 4;
  Fault other = {};  // another way than the usual one, and no fault
};

class GoodRuns : public testing::TestWithParam<Good> {};

TEST_P(GoodRuns, HaveNoFinding) {
  const CheckResult result = Checked(GetParam().edit, GetParam().other, GetParam().world);
  EXPECT_EQ(FoundIn(result), "") << First(result);
  EXPECT_TRUE(result.judged.contains("LW-01"));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, GoodRuns,
    testing::Values(
        Good{"plain", kPlain}, Good{"broadcast", kBroadcast}, Good{"padded", kPadded},
        Good{"aligned", kAligned}, Good{"grads", kIntoGrads},
        Good{"grads_broadcast", kIntoGrads + kBroadcast}, Good{"overlap", kOverlap},
        Good{"overlap_broadcast", kOverlap + kBroadcast},
        Good{"overlap_padded", kOverlap + kPadded}, Good{"overlap_aligned", kOverlap + kAligned},
        Good{"overlap_grads", kOverlap + kIntoGrads}, Good{"experts", kExperts},
        Good{"overlap_experts", kOverlap + kExperts}, Good{"aligned_experts", kAligned + kExperts},
        Good{"eval", kOverlap + kEval}, Good{"eval_sync", kEval}, Good{"load", kLoad},
        Good{"load_overlap", kOverlap + kLoad}, Good{"frozen", kFrozen + kOverlap},
        Good{"sgd", kSgd}, Good{"one_bucket", kOneBucket + kOverlap}, Good{"one_rank", kOverlap, 1},
        Good{"experts_alone", kOverlap + kExperts, 2}, Good{"three", kOverlap, 3},
        Good{"unused", kSgd + kUnused + kOverlap}, Good{"unused_decay", kSgd + kUnused + kDecay},
        Good{"load_aligned", kAligned + kOverlap + kLoad},
        Good{"small_buckets", kOverlap + kSmallBuckets}),
    [](const auto& row) { return std::string(row.param.name); });

INSTANTIATE_TEST_SUITE_P(
    OtherWays, GoodRuns,
    testing::Values(
        Good{"root_in_place", kBroadcast, 4, FAULT(root_in_place)},
        Good{"root_in_place_overlap", kBroadcast + kOverlap, 4, FAULT(root_in_place)},
        Good{"root_in_place_grads", kBroadcast + kOverlap + kIntoGrads, 4, FAULT(root_in_place)},
        Good{"root_in_place_experts", kBroadcast + kOverlap + kExperts, 4, FAULT(root_in_place)},
        Good{"root_sends_alone", kBroadcast, 4, FAULT(root_sends_alone)},
        Good{"root_sends_main", kBroadcast, 4, FAULT(root_sends_main)},
        Good{"root_sends_alone_overlap", kBroadcast + kOverlap, 4, FAULT(root_sends_alone)},
        Good{"root_sends_alone_grads", kBroadcast + kOverlap + kIntoGrads, 4,
             FAULT(root_sends_alone)},
        Good{"root_sends_alone_experts", kBroadcast + kOverlap + kExperts, 4,
             FAULT(root_sends_alone)},
        Good{"pieces_apart", kBroadcast, 4, FAULT(pieces_apart)},
        Good{"pieces_apart_overlap", kBroadcast + kOverlap, 4, FAULT(pieces_apart)},
        Good{"sync_eval", kOverlap + kEval, 4, FAULT(sync_eval)},
        Good{"coarse", kPlain, 4, FAULT(coarse)}, Good{"coarse_padded", kPadded, 4, FAULT(coarse)},
        Good{"coarse_broadcast", kBroadcast, 4, FAULT(coarse)},
        Good{"coarse_aligned", kAligned + kOverlap, 4, FAULT(coarse)},
        Good{"sync_eval_aligned", kAligned + kOverlap + kEval, 4, FAULT(sync_eval)}),
    [](const auto& row) { return std::string(row.param.name); });

// Bytes from files have no name before they are published.
TEST(LayerWise, WeightsInstalledBeforeTheyArePublished) {
  for (const Edit& edit : {kLoad, kLoad + kOverlap}) {
    const CheckResult result = Checked(edit, [](LayerWiseFaults& f) { f.install_unnamed = true; });
    EXPECT_EQ(FoundIn(result), "") << First(result);
  }
}

TEST(LayerWise, OtherStrategiesAreNotJudged) {
  const MiniRun mini = RunMini(MiniCase(2));
  const CheckResult result = CheckLayerWise(mini.run);
  EXPECT_TRUE(result.judged.empty());
  EXPECT_TRUE(result.not_checkable.empty());
}

// Nothing is left to install.
TEST(LayerWise, WhatArrivesInTheModelWeightsIsInTheWrongPlaceAlone) {
  for (const Edit& edit : {kBroadcast, kBroadcast + kOverlap})
    EXPECT_EQ(FoundIn(Checked(edit, FAULT(into_weights))), "LW-21");
}

// Buffers that are kept too long are LW-25's, ones that are given back too early LW-18's.
TEST(LayerWise, WhatIsInstalledIsUnderWayNoMore) {
  EXPECT_EQ(FoundIn(Checked(kOverlap, FAULT(keep_buffer))), "LW-25");
  const std::string given_back = FoundIn(Checked(kOverlap, FAULT(no_copy)));
  EXPECT_NE(given_back.find("LW-18"), std::string::npos);
  EXPECT_EQ(given_back.find("LW-24"), std::string::npos) << given_back;
}

// ------------------------------------------------------------------ faults

struct Bad {
  const char* name;
  const char* id;
  Fault fault;
  Edit edit = kPlain;
  int32_t world = 4;
};

class BadRuns : public testing::TestWithParam<Bad> {};

TEST_P(BadRuns, AreFound) {
  const CheckResult result = Checked(GetParam().edit, GetParam().fault, GetParam().world);
  bool found = false;
  for (const Finding& finding : result.findings) found |= finding.requirement == GetParam().id;
  EXPECT_TRUE(found) << "found only: " << FoundIn(result) << "\n" << First(result);
}

INSTANTIATE_TEST_SUITE_P(Owners, BadRuns,
                         testing::Values(Bad{"publish_all", "LW-01", FAULT(publish_all)},
                                         Bad{"publish_none", "LW-01", FAULT(publish_none)},
                                         Bad{"publish_half", "LW-02", FAULT(publish_half)},
                                         Bad{"owner_moves", "LW-03", FAULT(owner_moves)},
                                         Bad{"step_all", "LW-04", FAULT(step_all)},
                                         Bad{"frozen", "LW-06", FAULT(frozen_in_bucket), kFrozen},
                                         Bad{"skip_update", "LW-32", FAULT_ON(1, skip_update)},
                                         Bad{"silent_update", "LW-32", FAULT(silent_update)},
                                         Bad{"step_twice", "LW-34", FAULT(step_twice)},
                                         Bad{"other_optimizer", "LW-34", FAULT(other_optimizer)},
                                         Bad{"sgd_by_adamw", "LW-34", FAULT(other_optimizer),
                                             kSgd}),
                         [](const auto& row) { return std::string(row.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Wire, BadRuns,
    testing::Values(
        Bad{"reduce_over_experts", "LW-05", FAULT(reduce_over_experts), kExperts},
        Bad{"mix_kinds", "LW-07", FAULT(mix_kinds), kExperts},
        Bad{"one_by_one", "LW-07", FAULT(one_by_one)}, Bad{"no_cut", "LW-07", FAULT(no_cut)},
        Bad{"no_cut_overlap", "LW-07", FAULT(no_cut), kOverlap + kUnused},
        Bad{"cross_edge", "LW-08", FAULT(cross_edge), kAligned},
        Bad{"cross_edge_overlap", "LW-08", FAULT(cross_edge), kAligned + kOverlap},
        Bad{"wide_padding", "LW-14", FAULT(wide_padding), kAligned},
        Bad{"wide_padding_load", "LW-14", FAULT(wide_padding), kAligned + kOverlap + kLoad},
        Bad{"bf16_wire", "LW-14", FAULT(bf16_wire)},
        Bad{"loose_counts", "LW-14", FAULT(loose_counts)},
        Bad{"loose_beside_coarse", "LW-14",
            [](LayerWiseFaults& f) { f.loose_counts = f.coarse = true; }},
        Bad{"loose_padding", "LW-14", FAULT(loose_counts), kPadded},
        Bad{"gather_alone", "LW-16", FAULT(gather_alone), kExperts, 2},
        Bad{"reduce_alone", "LW-16", FAULT(reduce_alone), kExperts, 2},
        Bad{"other_reduction", "LW-28", FAULT(other_reduction), kAligned},
        Bad{"transport", "LW-21",
            [](LayerWiseFaults& f) { f.transport = LayerWiseTransport::kBroadcast; }},
        Bad{"broadcast_asked", "LW-21",
            [](LayerWiseFaults& f) { f.transport = LayerWiseTransport::kPadded; }, kBroadcast},
        Bad{"out_of_place", "LW-21", FAULT(out_of_place), kAligned},
        Bad{"into_grads", "LW-21", [](LayerWiseFaults& f) { f.buffer = LayerWiseBuffer::kGrads; }},
        Bad{"into_buffer", "LW-21", [](LayerWiseFaults& f) { f.buffer = LayerWiseBuffer::kOwn; },
            kIntoGrads}),
    [](const auto& row) { return std::string(row.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Contract, BadRuns,
    testing::Values(Bad{"before_install", "LW-10", FAULT(before_install)},
                    Bad{"other_root", "LW-10", FAULT(other_root), kBroadcast},
                    Bad{"late_need", "LW-11", FAULT(late_need), kOverlap},
                    Bad{"late_need_aligned", "LW-11", FAULT(late_need), kOverlap + kAligned},
                    Bad{"never_gathered", "LW-11", FAULT(no_gather)},
                    Bad{"copy_own", "LW-12", FAULT(copy_own)},
                    Bad{"own_out_of_place", "LW-12", FAULT(out_of_place), kAligned},
                    Bad{"no_gather", "LW-13", FAULT(no_gather)},
                    Bad{"no_gather_overlap", "LW-13", FAULT(no_gather), kOverlap},
                    Bad{"each_microbatch", "LW-13", FAULT(each_microbatch), kOverlap},
                    Bad{"eval_too", "LW-13", FAULT(eval_too), kEval + kOverlap},
                    Bad{"late_sync", "LW-13", FAULT(other_time)},
                    Bad{"early_overlap", "LW-13", FAULT(other_time), kOverlap},
                    Bad{"at_create", "LW-19", FAULT(at_create), kOverlap},
                    Bad{"no_copy", "LW-18", FAULT(no_copy)},
                    Bad{"no_copy_grads", "LW-22", FAULT(no_copy), kIntoGrads},
                    Bad{"late_install", "LW-18", FAULT(late_install), kOverlap + kBroadcast},
                    Bad{"no_install", "LW-35", FAULT(no_install)}),
    [](const auto& row) { return std::string(row.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Scratch, BadRuns,
    testing::Values(Bad{"no_wait", "LW-17", FAULT(no_wait), kOverlap},
                    Bad{"no_wait_padded", "LW-17", FAULT(no_wait), kPadded + kOverlap},
                    Bad{"no_wait_aligned", "LW-17", FAULT(no_wait), kAligned + kOverlap},
                    Bad{"free_early", "LW-18", FAULT(free_early), kOverlap},
                    Bad{"no_zero", "LW-22", FAULT(no_zero), kIntoGrads + kOverlap},
                    Bad{"zero_next", "LW-22", FAULT(zero_next), kIntoGrads + kOverlap},
                    Bad{"late_into_grads", "LW-23", FAULT(late_install), kIntoGrads + kOverlap},
                    Bad{"beside_reduction", "LW-23", FAULT(gather_beside_reduction), kIntoGrads},
                    Bad{"all_ahead", "LW-24", FAULT(all_ahead), kOverlap},
                    Bad{"all_ahead_broadcast", "LW-24", FAULT(all_ahead), kOverlap + kBroadcast},
                    Bad{"all_ahead_aligned", "LW-24", FAULT(all_ahead), kOverlap + kAligned},
                    Bad{"two_ahead", "LW-24", FAULT(two_ahead), kOverlap},
                    Bad{"two_ahead_grads", "LW-24", FAULT(two_ahead), kOverlap + kIntoGrads},
                    Bad{"two_ahead_broadcast", "LW-24", FAULT(two_ahead), kOverlap + kBroadcast},
                    Bad{"keep_buffer", "LW-25", FAULT(keep_buffer), kOverlap},
                    Bad{"wait_at_once", "LW-38", FAULT(wait_at_once), kOverlap},
                    Bad{"wait_at_once_aligned", "LW-38", FAULT(wait_at_once), kAligned + kOverlap}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(LayerWise, AStaleReadNamesModuleAndGather) {
  const CheckResult result = Checked(kOverlap, FAULT(late_need));
  const auto stale =
      std::find_if(result.findings.begin(), result.findings.end(),
                   [](const Finding& finding) { return finding.requirement == "LW-11"; });
  ASSERT_NE(stale, result.findings.end());
  EXPECT_NE(stale->message.find("module "), std::string::npos) << stale->message;
  EXPECT_NE(stale->message.find("its gather comes later, at event "), std::string::npos)
      << stale->message;
}

TEST(LayerWise, ABroadcastFromAnotherRootNamesItAndTheOwner) {
  const CheckResult result = Checked(kBroadcast, FAULT(other_root));
  const auto wrong =
      std::find_if(result.findings.begin(), result.findings.end(),
                   [](const Finding& finding) { return finding.requirement == "LW-10"; });
  ASSERT_NE(wrong, result.findings.end());
  EXPECT_NE(wrong->message.find("the broadcast's root is "), std::string::npos) << wrong->message;
  EXPECT_NE(wrong->message.find(" owns "), std::string::npos) << wrong->message;
}

TEST(LayerWise, OtherFamiliesSpeakForRows) {
  const LayerWiseRun made = RunLayerWise(LayerWiseCase(2));
  CheckResult others;
  others.judged = {"FS-25", "GE-01"};
  others.findings.push_back({});
  others.findings[0].requirement = "FS-25";
  const CheckResult cited = CiteForLayerWise(Analysis(made.run), others);
  EXPECT_EQ(FoundWithoutTrace(cited), "LW-30");
  EXPECT_TRUE(cited.judged.contains("LW-15"));
}

TEST(LayerWise, ForeignOptionsAreRefusals) {
  Case c;
  c.world = 2;
  c.instances[0].layer_wise.buffer = LayerWiseBuffer::kGrads;
  Derive(c);
  shardproof::Run run;
  run.spec = &c;
  CheckResult others;
  others.judged = {"GE-20"};
  EXPECT_TRUE(CiteForLayerWise(Analysis(run), others).judged.contains("LW-37"));
}

}  // namespace
}  // namespace shardproof
