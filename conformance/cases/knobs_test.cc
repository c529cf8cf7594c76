#include <gtest/gtest.h>

#include "conformance/cases/case.h"

namespace shardproof {
namespace {

using KnobMap = std::map<std::string, std::string>;

KnobMap KnobsOf(const std::string& id) {
  const Case c = ParseId(id);
  return Knobs(c.instances[0], c.world);
}

TEST(KnobsTest, DefaultsAreNotSet) {
  EXPECT_EQ(KnobsOf("w8.ddp"), (KnobMap{{"microbatches", "1"}, {"lr", "0.015625"}}));
}

TEST(KnobsTest, AxesAreSetForGridsOnly) {
  EXPECT_EQ(KnobsOf("w8.ddp.tp2.etp2.pp2"), KnobsOf("w8.ddp"));
  const KnobMap knobs = KnobsOf("w8.ddp.grid.tp2.etp2.at2.order=dp-tp");
  EXPECT_EQ(knobs.at("groups"), "grid");
  EXPECT_EQ(knobs.at("tp"), "2");
  EXPECT_EQ(knobs.at("etp"), "2");
  EXPECT_EQ(knobs.at("order"), "dp-tp");
  EXPECT_EQ(knobs.at("rank_offset"), "2");
  EXPECT_EQ(knobs.at("rank_span"), "6");
  EXPECT_EQ(knobs.count("cp"), 0u);
}

TEST(KnobsTest, GridOverTheWorldNeedsNoSpan) {
  EXPECT_EQ(KnobsOf("w8.ddp.grid").count("rank_span"), 0u);
  EXPECT_EQ(Knobs(ParseId("w8.ddp.grid").instances[0]).at("rank_span"), "8");
}

TEST(KnobsTest, TokensAreToldWithPerTokenLoss) {
  EXPECT_EQ(KnobsOf("w4.zero3.k2.pertoken").at("tokens_per_step"), "64");
  EXPECT_EQ(KnobsOf("w4.zero3.k2").count("tokens_per_step"), 0u);
}

TEST(KnobsTest, NoUnitsHaveAWord) {
  EXPECT_EQ(KnobsOf("w4.zero3.units=none").at("units"), "none");
  EXPECT_EQ(KnobsOf("w4.zero3").count("units"), 0u);
}

TEST(KnobsTest, PrefetchLimitOfZeroIsSet) {
  EXPECT_EQ(KnobsOf("w4.zero3.pf0").at("prefetch_limit_bytes"), "0");
  EXPECT_EQ(KnobsOf("w4.zero3").count("prefetch_limit_bytes"), 0u);
}

TEST(KnobsTest, TwinSetsTheOptIn) {
  EXPECT_EQ(KnobsOf("w4.zero3.twin").at("create_all_gather_group"), "1");
  EXPECT_EQ(KnobsOf("w4.zero3.twin=short").at("create_all_gather_group"), "1");
}

TEST(KnobsTest, EveryOtherKnobHasItsName) {
  const KnobMap knobs = KnobsOf(
      "w8.zero3.n2.hfsdp.k1.ogr.opg.avg.bf16.wire16.acc16.bs64.recompute.ub.adamw.wd0p125.clip0p5."
      "norm.nan.mem4096");
  for (const auto& [name, value] : KnobMap{{"strategy", "optim_grads_params"},
                                           {"outer_strategy", "optim"},
                                           {"num_optimizer_instances", "2"},
                                           {"overlap_grad_reduce", "1"},
                                           {"overlap_param_gather", "1"},
                                           {"average_in_collective", "1"},
                                           {"param_dtype", "bf16"},
                                           {"grad_comm_dtype", "bf16"},
                                           {"main_grads_dtype", "bf16"},
                                           {"bucket_size", "64"},
                                           {"recompute", "1"},
                                           {"nccl_ub", "1"},
                                           {"optimizer", "adamw"},
                                           {"weight_decay", "0.125"},
                                           {"clip_grad", "0.5"},
                                           {"grad_norm", "1"},
                                           {"check_for_nan_in_grad", "1"},
                                           {"device_memory_bytes", "4096"}}) {
    EXPECT_EQ(knobs.count(name) == 1 ? knobs.at(name) : "not set", value) << name;
  }
}

TEST(KnobsTest, ScheduleIsToldWhereItDiffers) {
  const KnobMap plain = KnobsOf("w8.zero3.ep2.moe8");
  EXPECT_EQ(plain, KnobsOf("w8.zero3"));  // experts are a fact of the tables, ep of the groups
  KnobMap knobs =
      KnobsOf("w8.zero3.ep2.moe8.1f1b.dw.er.hp.ls3.recompute=norm.graph=full_iteration");
  for (const auto& [name, value] : plain) {
    EXPECT_EQ(knobs.at(name), value) << name;
    knobs.erase(name);
  }
  EXPECT_EQ(knobs, (KnobMap{{"overlap_moe_expert_parallel_comm", "1"},
                            {"delay_wgrad_compute", "1"},
                            {"ep_overlap_early_attn_memory_release", "1"},
                            {"high_priority_a2a_comm_stream", "1"},
                            {"loss_scale", "8"},
                            {"recompute_modules", "norm"},
                            {"cuda_graph_impl", "full_iteration"}}));
}

TEST(KnobsTest, KnobsThatAreOnlyRefused) {
  EXPECT_EQ(KnobsOf("w8.ddp.badscale3").at("loss_scale"), "3");
  EXPECT_EQ(KnobsOf("w8.ddp.ls-1").at("loss_scale"), "0.5");
  EXPECT_EQ(KnobsOf("w8.ddp.pp2.k2.layers4.vpp2").at("virtual_pipeline_model_parallel_size"), "2");
  const KnobMap knobs = KnobsOf("w8.zero3.ep2.moe8.1f1b.sharedoverlap.doublebuffer");
  EXPECT_EQ(knobs.at("moe_shared_expert_overlap"), "1");
  EXPECT_EQ(knobs.at("fsdp_double_buffer"), "1");
}

}  // namespace
}  // namespace shardproof
