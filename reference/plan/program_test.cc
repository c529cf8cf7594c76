#include "reference/plan/program.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace reference {
namespace {

// in -> x -> (layer) h -> y -> out, where the layer's hidden value h is needed again in backward.
class LivenessTest : public testing::Test {
 protected:
  enum Value { kX, kH, kY, kLoss };
  LivenessTest() {
    uses_ = {{Act(kX, SPF_WRITE)},
             {Act(kX, SPF_READ), Act(kH, SPF_WRITE)},
             {Act(kH, SPF_READ), Act(kY, SPF_WRITE)},
             {Act(kY, SPF_READ), Act(kLoss, SPF_WRITE)}};
    back_ = {{},
             {Act(kX, SPF_READ), Dact(kH, SPF_READ)},
             {Act(kH, SPF_READ), Dact(kY, SPF_READ), Dact(kH, SPF_WRITE)},
             {Act(kY, SPF_READ), Dact(kY, SPF_WRITE)}};
    const int32_t modules[] = {0, 1, 1, 2};
    for (size_t i = 0; i < 4; ++i) {
      spf_node node{};
      node.id = static_cast<int32_t>(i), node.module = modules[i];
      node.uses[SPF_FWD] = {static_cast<int32_t>(uses_[i].size()), uses_[i].data()};
      node.uses[SPF_BWD] = {static_cast<int32_t>(back_[i].size()), back_[i].data()};
      nodes_.push_back(node);
    }
    program_ = {sizeof(spf_program), 4, nodes_.data()};
  }
  static spf_use Act(int32_t value, uint8_t access) { return {SPF_IN_ACT, access, 0, value}; }
  static spf_use Dact(int32_t value, uint8_t access) { return {SPF_IN_DACT, access, 0, value}; }
  static bool Dies(const std::vector<std::vector<ValueRef>>& deaths, size_t operation,
                   bool gradient, int32_t value) {
    for (const ValueRef& dead : deaths[operation]) {
      if (dead == ValueRef{gradient, value}) return true;
    }
    return false;
  }
  std::vector<std::vector<spf_use>> uses_, back_;
  std::vector<spf_node> nodes_;
  spf_program program_{};
};

TEST_F(LivenessTest, EvalFreesValuesAfterTheirLastReader) {
  const auto deaths = Deaths(EvalOperations(program_), 4);
  EXPECT_TRUE(Dies(deaths, 1, false, kX));
  EXPECT_TRUE(Dies(deaths, 2, false, kH));
  EXPECT_TRUE(Dies(deaths, 3, false, kY));
  EXPECT_TRUE(Dies(deaths, 3, false, kLoss));
}

TEST_F(LivenessTest, TrainingKeepsValuesForBackward) {
  const auto operations = TrainOperations(program_, {});
  ASSERT_EQ(operations.size(), 7U) << "the input has no backward";
  const auto deaths = Deaths(operations, 4);
  EXPECT_TRUE(Dies(deaths, 4, false, kY));
  EXPECT_TRUE(Dies(deaths, 5, false, kH));
  EXPECT_TRUE(Dies(deaths, 5, true, kY));
  EXPECT_TRUE(Dies(deaths, 6, false, kX));
}

TEST_F(LivenessTest, RecomputeDropsHiddenValuesAndMakesThemAgain) {
  const auto operations = TrainOperations(program_, {{-1, 1, -1}, {}});
  ASSERT_EQ(operations.size(), 9U);
  EXPECT_TRUE(operations[5].recompute);
  EXPECT_TRUE(operations[6].recompute);
  EXPECT_EQ(operations[5].node->id, 1);
  EXPECT_EQ(operations[7].phase, SPF_BWD);
  const auto deaths = Deaths(operations, 4);
  EXPECT_TRUE(Dies(deaths, 2, false, kH)) << "dropped in forward";
  EXPECT_TRUE(Dies(deaths, 7, false, kH)) << "dropped again after backward";
  EXPECT_FALSE(Dies(deaths, 1, false, kX)) << "the segment's input is kept";
  EXPECT_TRUE(Dies(deaths, 4, false, kY))
      << "the output is kept for the next module's backward only";
  EXPECT_TRUE(Dies(deaths, 6, false, kY));
}

// y is read by the loss's backward, h by the layer's own.
TEST_F(LivenessTest, OnDemandRunsANodeAgainBeforeItsFirstReaderInBackward) {
  const auto operations = TrainOperations(program_, {{}, {false, false, true}});
  ASSERT_EQ(operations.size(), 7U) << "nobody reads the loss, so it is not made again";
  nodes_[2].module = 3;
  const auto again = TrainOperations(program_, {{}, {false, false, false, true}});
  ASSERT_EQ(again.size(), 8U);
  EXPECT_TRUE(again[4].recompute);
  EXPECT_EQ(again[4].node->id, 2);
  EXPECT_EQ(again[5].node->id, 3);
  EXPECT_EQ(again[5].phase, SPF_BWD);
  const auto deaths = Deaths(again, 4);
  EXPECT_TRUE(Dies(deaths, 3, false, kY)) << "dropped in forward";
  EXPECT_TRUE(Dies(deaths, 5, false, kY));
}

TEST_F(LivenessTest, WhatANodeNeedsToRunAgainIsMadeFirst) {
  nodes_[2].module = 1, nodes_[1].module = 1;
  const auto operations = TrainOperations(program_, {{}, {false, true, false}});
  ASSERT_EQ(operations.size(), 9U);
  EXPECT_EQ(operations[4].node->id, 1) << "h, for";
  EXPECT_EQ(operations[5].node->id, 2) << "y, for the loss's backward";
  EXPECT_EQ(operations[6].node->id, 3);
  EXPECT_FALSE(Dies(Deaths(operations, 4), 5, false, kH)) << "made once, used twice";
}

TEST(RecomputePlan, FollowsTheTypesOfModules) {
  const std::vector<spf_module> modules{{-1, "", "Model"},  {0, "", "TransformerLayer"},
                                        {1, "", "RMSNorm"}, {1, "", "Attention"},
                                        {3, "", "Linear"},  {1, "", "MoE"},
                                        {5, "", "Router"},  {0, "", "RMSNorm"}};
  spf_model model{};
  model.n_modules = 8, model.modules = modules.data();
  const Recompute some = PlanRecompute(model, false, {"norm", "core_attn", "moe"});
  EXPECT_EQ(some.on_demand,
            (std::vector<bool>{false, false, true, true, false, false, false, false}))
      << "the final norm is in no layer";
  EXPECT_EQ(some.segment_of, (std::vector<int32_t>{-1, -1, -1, -1, -1, 5, 5, -1}));
  const Recompute layers = PlanRecompute(model, true, {"norm"});
  EXPECT_EQ(layers.segment_of, (std::vector<int32_t>{-1, 1, 1, 1, 1, 1, 1, -1}));
  EXPECT_TRUE(layers.on_demand.empty());
}

TEST(Segments, AreOutermostModulesOfTheType) {
  const std::vector<spf_module> modules{
      {-1, "", "Model"}, {0, "", "TransformerLayer"}, {1, "", "Mlp"}, {0, "", "Head"}};
  spf_model model{};
  model.n_modules = 4, model.modules = modules.data();
  EXPECT_EQ(SegmentsOfType(model, "TransformerLayer"), (std::vector<int32_t>{-1, 1, 1, -1}));
}

// norm -> x; of each chunk head: x -> y, loss: y -> l. Both add to the gradient of x, and to l.
TEST(LossChunks, EachIsForwardAndBackwardBeforeTheNext) {
  enum Value { kX, kY0, kY1, kLoss };
  const auto act = [](int32_t id, uint8_t access) { return spf_use{SPF_IN_ACT, access, 0, id}; };
  const auto dact = [](int32_t id, uint8_t access) { return spf_use{SPF_IN_DACT, access, 0, id}; };
  std::vector<std::vector<spf_use>> forward{{act(kX, SPF_WRITE)}}, backward{{dact(kX, SPF_READ)}};
  for (const int32_t y : {kY0, kY1}) {
    forward.push_back({act(kX, SPF_READ), act(y, SPF_WRITE)});
    backward.push_back({act(kX, SPF_READ), dact(y, SPF_READ), dact(kX, SPF_ADD)});
    forward.push_back({act(y, SPF_READ), act(kLoss, SPF_ADD)});
    backward.push_back({act(y, SPF_READ), dact(y, SPF_WRITE)});
  }
  std::vector<spf_node> nodes(5);
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].id = static_cast<int32_t>(i);
    nodes[i].uses[SPF_FWD] = {static_cast<int32_t>(forward[i].size()), forward[i].data()};
    nodes[i].uses[SPF_BWD] = {static_cast<int32_t>(backward[i].size()), backward[i].data()};
  }
  const spf_program program{sizeof(spf_program), 5, nodes.data()};
  std::string order;
  const auto operations = TrainOperations(program, {});
  for (const Operation& o : operations)
    order += (o.phase == SPF_FWD ? "f" : "b") + std::to_string(o.node->id) + " ";
  EXPECT_EQ(order, "f0 f1 f2 b2 b1 f3 f4 b4 b3 b0 ");
  // The loss is complete where it dies; logits die with their chunk, what the head reads does not.
  const DeathList deaths = Deaths(operations, 4);
  const auto dies = [&](size_t i, ValueRef value) {
    return std::ranges::count(deaths[i], value) > 0;
  };
  EXPECT_TRUE(dies(6, {false, kLoss}) && !dies(2, {false, kLoss}));
  EXPECT_TRUE(dies(3, {false, kY0}) && dies(4, {true, kY0}));
  EXPECT_TRUE(dies(8, {false, kX}) && dies(9, {true, kX}));
  EXPECT_EQ(EvalOperations(program).size(), 5u);
}

}  // namespace
}  // namespace reference
