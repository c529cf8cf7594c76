#include "conformance/cases/illegal.h"

#include <gtest/gtest.h>

#include <map>

#include "conformance/cases/profiles.h"

namespace shardproof {
namespace {

TEST(IllegalTest, EveryRuleHasACase) {
  std::map<std::string, int> cases_of;
  for (const Case& c : IllegalCases()) {
    ASSERT_FALSE(c.illegal.empty()) << Id(c);
    std::string rule;
    EXPECT_EQ(IllegalText(c.instances[0], c.world, &rule), c.illegal);
    ++cases_of[rule];
  }
  for (const IllegalRule& rule : IllegalRules()) EXPECT_GE(cases_of[rule.name], 1) << rule.name;
}

TEST(IllegalTest, EachCaseIsIllegalForTheRuleThatListsIt) {
  for (const IllegalRule& rule : IllegalRules()) {
    for (const Case& c : CasesThatAsk({rule})) {
      std::string first;
      IllegalText(c.instances[0], c.world, &first);
      EXPECT_EQ(first, rule.name) << Id(c);
    }
  }
}

TEST(IllegalTest, DefaultCaseIsLegal) { EXPECT_EQ(ParseId("w8.ddp").illegal, ""); }

TEST(IllegalTest, GridReasonsAreAllAsked) {
  std::string all;
  for (const Case& c : IllegalCases()) all += c.illegal + "\n";
  for (const char* part :
       {"not divisible by tp * cp * pp", "not divisible by etp * ep * pp", "does not list tp",
        "does not list cp", "does not list dp", "is listed twice", "there is no axis",
        "at least one rank", "pp groups of the dense and of the expert grid differ"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part;
  }
}

TEST(IllegalTest, AllWrongTwinsAreAsked) {
  std::string all;
  for (const Case& c : IllegalCases()) all += c.illegal + "\n";
  for (const char* word : {"permuted", "short", "full_span", "default_order"}) {
    EXPECT_NE(all.find(word), std::string::npos) << word;
  }
}

TEST(IllegalTest, TextNamesFieldAndValue) {
  EXPECT_EQ(ParseId("w6.zero2.n4").illegal,
            "num_optimizer_instances = 4 does not divide the 6 ranks of dp_cp");
  EXPECT_EQ(ParseId("w8.zero3.n4.ep4.experts").illegal,
            "num_optimizer_instances = 4 does not divide the 2 ranks of expt_dp");
  EXPECT_EQ(ParseId("w8.zero1.n2.hfsdp").illegal,
            "outer_strategy = optim with strategy = optim: it needs optim_grads_params");
}

TEST(IllegalTest, EachCaseOfAScheduleBreaksOneRuleAndIsLegalWithoutOneToken) {
  std::map<std::string, int> cases_of;
  for (const Case& c : CasesThatAsk(IllegalScheduleRules())) {
    int broken = 0;
    for (const IllegalRule& rule : IllegalRules()) {
      if (rule.broken(c.instances[0], c.world).empty()) continue;
      ++broken;
      ++cases_of[rule.name];
    }
    EXPECT_EQ(broken, 1) << Id(c);
  }
  for (const IllegalRule& rule : IllegalScheduleRules())
    EXPECT_GE(cases_of[rule.name], 1) << rule.name;
}

TEST(IllegalTest, RulesOfSchedulesEndWhereTheySay) {
  for (const char* legal : {"w8.zero3.ep2.moe8.1f1b.dw.er",
                            "w8.zero2.ep2.moe8.1f1b.units=none",
                            "w8.zero3.hp",
                            "w8.zero3.ep2.moe8.recompute",
                            "w8.zero3.ep2.moe8.sharedoverlap",
                            "w8.zero3.doublebuffer",
                            "w8.zero3.ep2.ub.moe8",
                            "w8.ddp.pp2.k2.ub.layers4.vpp2",
                            "w8.ddp.ep2.moe8.1f1b.doublebuffer",
                            "w8.zero1.doublebuffer",
                            "w8.zero3.units=none.doublebuffer",
                            "w8.zero3.reshard2.doublebuffer",
                            "w8.zero3.ep2.moe8.1f1b.graph=full_iteration",
                            "w8.ddp.ep2.moe8.1f1b.graph=per_layer",
                            "w8.zero3.ep2.moe8.recompute=moe",
                            "w8.zero3.ep2.moe8.1f1b.recompute=norm,core_attn",
                            "w8.zero3.pp2",
                            "w8.ddp.pp2.ep2.k2.layers4.moe8.vpp2.1f1b",
                            "w8.ddp.pp2.k2.layers4.vpp2",
                            "w8.zero3.pp2.k2.layers4.vpp2",
                            "w8.zero2.ep2.pp2.k2.layers4.moe4.vpp2",
                            "w8.zero1.pp2.ep2.k2.layers4.moe8.vpp2.1f1b",
                            "w8.lw.pp2.ep2.k2.layers4.moe8.vpp2.1f1b"}) {
    EXPECT_EQ(ParseId(legal).illegal, "") << legal;
  }
}

// Legal, and not what the suite can judge.
TEST(IllegalTest, StagesThatAreNotAsked) {
  for (const char* id :
       {"w8.zero3.pp2.k2.layers4.vpp2.units=none", "w8.zero2.pp2.k2.layers4.vpp2.units=none",
        "w8.zero3.reshard2.pp2.k2.layers4.vpp2"})
    EXPECT_THROW(ParseId(id), std::invalid_argument) << id;
}

TEST(IllegalTest, TextOfASchedule) {
  EXPECT_EQ(ParseId("w8.zero3.ep2.pp2.k2.layers4.moe4.vpp2.1f1b").illegal,
            "strategy = optim_grads_params with overlap_moe_expert_parallel_comm = 1, pp = 2 and "
            "virtual_pipeline_model_parallel_size = 2: an interleaved pipeline needs whole "
            "gradients then");
  EXPECT_EQ(ParseId("w8.zero3.moe8.1f1b").illegal,
            "overlap_moe_expert_parallel_comm = 1 with ep = 1: there is nobody to exchange tokens "
            "with");
}

}  // namespace
}  // namespace shardproof
