// Layer-wise engines: ids, knobs, what is illegal, and the space of their cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "conformance/cases/cases_for_test.h"
#include "conformance/cases/illegal.h"
#include "conformance/cases/layer_wise_space.h"
#include "conformance/cases/profiles.h"

namespace shardproof {
namespace {

TEST(LayerWiseCaseTest, EveryOptionIsPartOfTheId) {
  Case c;
  InstanceSpec& spec = c.instances[0];
  spec.strategy = ShardingStrategy::kLayerWise;
  spec.layer_wise = {LayerWiseLayout::kDealt, LayerWiseTransport::kBroadcast,
                     LayerWiseBuffer::kGrads};
  spec.zero_count = true;
  spec.skip_norm = 0.5;
  Derive(c);
  ASSERT_EQ(c.illegal, "");
  EXPECT_EQ(Id(c), "w8.lw.zeros.skip0p5.bcast.gradbuf");
  EXPECT_EQ(ParseId(Id(c)), c);
  EXPECT_EQ(ParseId("w8.lw.transport=padded").instances[0].layer_wise.transport,
            LayerWiseTransport::kPadded);
  EXPECT_EQ(Id(ParseId("w8.lw.layout=aligned")), "w8.lw.aligned");
}

TEST(LayerWiseCaseTest, KnobsAreSetWhereTheyDiffer) {
  const auto plain = Knobs(ParseId("w2.lw").instances[0], 2);
  EXPECT_EQ(plain, (std::map<std::string, std::string>{
                       {"microbatches", "1"}, {"lr", "0.015625"}, {"strategy", "layer_wise"}}));
  auto knobs = Knobs(ParseId("w2.lw.zeros.skip4.bcast.gradbuf").instances[0], 2);
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"log_num_zeros_in_grad", "1"},
                                          {"grad_norm_skip_threshold", "4"},
                                          {"layer_wise_transport", "broadcast"},
                                          {"layer_wise_buffer", "grads"}}) {
    ASSERT_EQ(knobs.count(name), 1u) << name;
    EXPECT_EQ(knobs.at(name), value) << name;
    knobs.erase(name);
  }
  EXPECT_EQ(knobs, plain);
  EXPECT_EQ(Knobs(ParseId("w2.lw.aligned").instances[0], 2).at("layer_wise_layout"), "aligned");
}

TEST(LayerWiseCaseTest, EachIllegalCaseBreaksOneRule) {
  std::map<std::string, int> cases_of;
  for (const Case& c : CasesThatAsk(IllegalLayerWiseRules())) {
    int broken = 0;
    for (const IllegalRule& rule : IllegalRules()) {
      if (rule.broken(c.instances[0], c.world).empty()) continue;
      ++broken;
      ++cases_of[rule.name];
    }
    EXPECT_EQ(broken, 1) << Id(c) << ": " << c.illegal;
  }
  for (const IllegalRule& rule : IllegalLayerWiseRules())
    EXPECT_GE(cases_of[rule.name], 1) << rule.name;
}

TEST(LayerWiseCaseTest, RulesEndWhereTheySay) {
  for (const auto& [illegal, legal] : {std::pair{"w4.lw.opg", "w4.lw.ogr.opg"},
                                       {"w4.lw.n2", "w4.zero2.n2"},
                                       {"w4.lw.aligned.padded", "w4.lw.padded"},
                                       {"w4.lw.aligned.gradbuf", "w4.lw.gradbuf"},
                                       {"w4.lw.acc16.gradbuf", "w4.lw.bf16.acc16.gradbuf"},
                                       {"w4.lw.padded.gradbuf", "w4.lw.bcast.gradbuf"},
                                       {"w4.ddp.ogr.opg.aligned", "w4.lw.ogr.opg.aligned"},
                                       {"w4.lw.skip-4", "w4.lw.skip4"}}) {
    EXPECT_NE(ParseId(illegal).illegal, "") << illegal;
    EXPECT_EQ(ParseId(legal).illegal, "") << legal;
  }
  EXPECT_EQ(ParseId("w4.ddp.opg").illegal, "");
  EXPECT_THROW(ParseId("w4.lw.skipinf"), std::invalid_argument);
}

TEST(LayerWiseCaseTest, TextNamesFieldAndValue) {
  EXPECT_EQ(ParseId("w4.zero3.bcast").illegal,
            "layer_wise_transport = broadcast with strategy = optim_grads_params: it needs "
            "layer_wise");
  EXPECT_EQ(ParseId("w4.lw.layout=sliced").illegal,
            "layer_wise_layout = sliced: unknown; use dealt aligned");
  EXPECT_EQ(ParseId("w8.lw.n2").illegal,
            "num_optimizer_instances = 2 with strategy = layer_wise: parameters have one owner "
            "among all data-parallel ranks");
  EXPECT_EQ(ParseId("w8.lw.skip-4").illegal,
            "grad_norm_skip_threshold = -4: the largest norm of a step that counts, or 0 for all");
}

TEST(LayerWiseCaseTest, RowsAndCasesConvertBothWays) {
  Spaces spaces;
  const LayerWiseSpace& space = LayerWiseSpaceOf("sim", spaces);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    EXPECT_EQ(ExpectRowIsACase(space, seed).instances[0].strategy, ShardingStrategy::kLayerWise);
  }
}

// One step's values are read by the next, whose own are read by a third.
TEST(LayerWiseCaseTest, EachCaseTrainsThreeSteps) {
  Spaces spaces;
  const LayerWiseSpace& space = LayerWiseSpaceOf("sim", spaces);
  const auto& factor = space.problem().factors[static_cast<size_t>(space.FactorIndex("script"))];
  for (const std::string& script : factor.values)
    EXPECT_GE(std::count(script.begin(), script.end(), 't'), 3) << script;
  for (const Case& c : NamedLayerWiseCases()) {
    const std::string& script = c.instances[0].script;
    EXPECT_GE(std::count(script.begin(), script.end(), 't'), 3) << Id(c);
    EXPECT_EQ(c.illegal, "") << Id(c);
    EXPECT_EQ(c.instances[0].lr, 0.0625) << Id(c);
  }
}

// The rules that tie gathers together leave what they should: three transports into a buffer of
// their own, two into the gradients, one layout without either, each with three of the four
// overlaps; less the gradients that are too small.
TEST(LayerWiseCaseTest, GathersThatAreLegalTogether) {
  Spaces spaces;
  const LayerWiseSpace& space = LayerWiseSpaceOf("sim", spaces);
  const auto has_transport = [&](const Relation& relation) {
    return std::count(relation.factors.begin(), relation.factors.end(),
                      space.FactorIndex("layer_wise_transport")) == 1;
  };
  const std::vector<Relation>& relations = space.problem().relations;
  const auto gathers = std::find_if(relations.begin(), relations.end(), has_transport);
  ASSERT_NE(gathers, relations.end());
  EXPECT_EQ(gathers->tuples.size(), (3 + 2 + 1) * 3 * 4 - 2 * 3u);
}

}  // namespace
}  // namespace shardproof
