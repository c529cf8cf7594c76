#include <gtest/gtest.h>

#include <set>

#include "conformance/cases/case.h"
#include "conformance/cases/cases_for_test.h"
#include "conformance/cases/profiles.h"
#include "conformance/cases/space.h"

namespace shardproof {
namespace {

TEST(IdTest, DefaultsDoNotAppear) {
  Case c;
  Derive(c);
  EXPECT_EQ(Id(c), "w8.ddp");
}

TEST(IdTest, TokensHaveOneOrder) {
  EXPECT_EQ(Id(ParseId("w8.adamw.k3.zero3.twin.n2")), "w8.zero3.n2.twin.k3.adamw");
}

TEST(IdTest, RandomCasesReadBackAsTheyWere) {
  const CaseSpace space({1, 2, 3, 4, 5, 6, 8, 16});
  std::set<std::string> ids;
  std::vector<Case> cases;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const Case c = space.Make(RandomRow(space.problem(), seed), seed % 7);
    ASSERT_EQ(ParseId(Id(c)), c) << Id(c);
    if (ids.insert(Id(c)).second) cases.push_back(c);
  }
  for (size_t i = 1; i < cases.size(); ++i) ASSERT_NE(cases[i - 1], cases[i]);
  EXPECT_GT(cases.size(), 1990u);
}

TEST(IdTest, EveryFieldIsPartOfTheId) {
  Case c;
  InstanceSpec& spec = c.instances[0];
  c.world = 16;
  c.seed = 99;
  spec.name = "policy";
  spec.tp = spec.cp = spec.ep = spec.etp = 2;
  spec.order = "tp-cp-pp-ep-dp";
  spec.grid = true;
  spec.twin = GatherTwin::kGiven;
  spec.model.layers = 3;
  spec.model.vocab = spec.model.ffn = 16;
  spec.model.width = 32;
  spec.model.heads = 4;
  spec.model.sequence = 1;
  spec.model.tied = spec.model.biases = spec.model.odd_sizes = spec.model.root_param =
      spec.model.reused = true;
  spec.model.frozen = "norms";
  spec.model.unused = "rank";
  spec.model.experts = true;
  spec.model.quantised = false;
  spec.strategy = ShardingStrategy::kOptimGrads;
  spec.microbatches = 3;
  spec.overlap_grad_reduce = spec.overlap_param_gather = spec.per_token_loss = true;
  spec.param_dtype = spec.grad_comm_dtype = spec.main_grads_dtype = KnobDtype::kBf16;
  spec.bucket_size = 77;
  spec.prefetch_limit_bytes = 4000;
  spec.units = "";
  spec.recompute = spec.nccl_ub = spec.grad_norm = spec.check_for_nan = true;
  spec.optimizer = Optimizer::kAdamw;
  spec.lr = 1e-5;
  spec.weight_decay = 0.125;
  spec.clip_grad = 1e20;
  spec.device_memory_bytes = 1 << 30;
  spec.script = "tsttlrte";
  Derive(c);
  ASSERT_EQ(c.illegal, "");
  EXPECT_EQ(ParseId(Id(c)), c) << Id(c);
  EXPECT_EQ(Id(c),
            "w16.s99.zero2.name=policy.twin.grid.tp2.cp2.ep2.etp2.order=tp-cp-pp-ep-dp.k3.ogr.opg."
            "pertoken.bf16.wire16."
            "acc16.bs77.pf4000.units=none.recompute.ub.adamw.lr1e-05.wd0p125.clip1e20.norm.nan."
            "mem1073741824.do=tsttlrte."
            "layers3.vocab16.width32.heads4.ffn16.seq1.tied.bias.odd.root.reused.frozen=norms."
            "unused=rank.experts.raw");
}

TEST(IdTest, EveryFieldOfExpertsAndSchedulesIsPartOfTheId) {
  Case c;
  InstanceSpec& spec = c.instances[0];
  spec.ep = 4;
  spec.strategy = ShardingStrategy::kOptimGrads;
  spec.overlap_moe = spec.delay_wgrad = spec.early_release = spec.high_priority = true;
  spec.loss_scale_log2 = -3;
  spec.recompute_modules = "norm,core_attn";
  spec.cuda_graph = GraphCapture::kFullIteration;
  spec.model.mtp = true;
  spec.model.moe = {16, 4, "odd", "sigmoid", 4, 2, true, true, true, 125, true, "rank"};
  Derive(c);
  ASSERT_EQ(c.illegal, "");
  EXPECT_EQ(ParseId(Id(c)), c) << Id(c);
  EXPECT_EQ(Id(c),
            "w8.zero2.ep4.moe16.top4.moelayers=odd.sigmoid.groups4.topgroups2.zloss.aux.shared."
            "cap125.pad.skew=rank.mtp.1f1b.dw.er.hp.ls-3.recompute=norm,core_attn."
            "graph=full_iteration");
}

TEST(IdTest, WhatIsAskedOnlyToBeRefusedIsPartOfTheId) {
  Case c;
  InstanceSpec& spec = c.instances[0];
  spec.pp = 2;
  spec.chunks = 2;
  spec.microbatches = 2;
  spec.model.layers = 4;
  spec.wrong_loss_scale = 0.75;
  spec.shared_expert_overlap = spec.double_buffer = true;
  spec.strategy = ShardingStrategy::kOptim;
  Derive(c);
  EXPECT_NE(c.illegal, "");
  EXPECT_EQ(ParseId(Id(c)), c) << Id(c);
  EXPECT_EQ(Id(c), "w8.zero1.pp2.k2.layers4.vpp2.badscale0p75.sharedoverlap.doublebuffer");
}

TEST(IdTest, WrittenCasesReadBackAsTheyWere) {
  for (const std::vector<Case>& cases :
       {IllegalCases(), SharedWorldCases(), NamedCases(), NamedScheduleCases(),
        FurtherScheduleCases(), PipelineCases(), NamedLayerWiseCases(), CrossCases()}) {
    for (const Case& c : cases) EXPECT_EQ(ParseId(Id(c)), c) << Id(c);
  }
}

TEST(IdTest, InstancesAreJoinedByPlus) {
  const Case c = ParseId("w8.zero3.name=policy+ddp.name=value.at4");
  ASSERT_EQ(c.instances.size(), 2u);
  EXPECT_EQ(c.instances[0].span, 8);
  EXPECT_EQ(c.instances[1].offset, 4);
  EXPECT_EQ(c.instances[1].span, 4);
  EXPECT_NE(c.instances[0].model.seed, c.instances[1].model.seed);
}

TEST(IdTest, WordsOfLayerWiseEnginesHaveTheirOwnTokens) {
  for (const auto& [id, same] :
       {std::pair{"w4.lw.transport=broadcast", "w4.lw.bcast"},
        {"w4.lw.transport=all_gather_v", "w4.lw"},
        {"w4.gradbuf.skip0p5.zeros.strategy=layer_wise.norm", "w4.lw.norm.zeros.skip0p5.gradbuf"},
        {"w4.aligned.opg.ogr.lw", "w4.lw.ogr.opg.aligned"}}) {
    EXPECT_EQ(Id(ParseId(id)), same);
  }
  EXPECT_NE(ErrorOf("w4.lw.skip").find("'skip' is not known"), std::string::npos);
  EXPECT_NE(ErrorOf("w4.lw.bcast.padded").find("said before"), std::string::npos);
}

TEST(IdTest, UnknownTokenIsNamed) {
  EXPECT_NE(ErrorOf("w8.zero3.frob").find("'frob' is not known"), std::string::npos);
  EXPECT_NE(ErrorOf("w8.zero3.k").find("'k' is not known"), std::string::npos);
  EXPECT_NE(ErrorOf("w8.zero3.k03").find("'k03' is not known"), std::string::npos);
  EXPECT_NE(ErrorOf("w8.zero3..tied").find("'' is not known"), std::string::npos);
}

TEST(IdTest, RepeatedFieldIsRefused) {
  EXPECT_NE(ErrorOf("w8.zero3.k2.k3").find("said before"), std::string::npos);
  EXPECT_NE(ErrorOf("w8.zero3.zero2").find("said before"), std::string::npos);
}

TEST(IdTest, NumbersAreBoundedBeforeAnythingComputesWithThem) {
  for (const auto& [id, part] : {
           std::pair{"w8.ddp.ep8.moe16.top1.groups0.skew=one", "does not divide moe"},
           {"w8.ddp.groups0.moe8.skew=rank.ep8", "does not divide moe"},
           {"w8.ddp.at-2147483648", "rank_offset = -2147483648: use"},
           {"w8.ddp.tp65536.cp65536", "tp = 65536: use"},
           {"w8.ddp.vpp2147483647.pp2", "model chunks = 2147483647"},
           {"w8.ddp.k2147483647", "microbatches = 2147483647"},
           {"w1.ddp.layers1000.width60000", "elements: at most"},
           {"w1.ddp.width256.ffn256.layers64.seq512.do=tttttttttttt", "the product is above"},
       }) {
    EXPECT_NE(ErrorOf(id).find(part), std::string::npos) << id << ": " << ErrorOf(id);
  }
  std::string many = "w8.ddp.name=a";
  for (char c = 'b'; c < 'r'; ++c) many += std::string("+ddp.name=") + c;
  EXPECT_NE(ErrorOf(many).find("1 to 16 instances, not 17"), std::string::npos) << ErrorOf(many);
}

TEST(IdTest, StrategyMustBeSaid) {
  EXPECT_NE(ErrorOf("w8.k2").find("names no strategy"), std::string::npos);
}

}  // namespace
}  // namespace shardproof
