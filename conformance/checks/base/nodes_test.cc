// Schedule nodes of a model with dense, expert and multi-token prediction layers.
#include "conformance/checks/base/nodes.h"

#include <gtest/gtest.h>

#include "conformance/checks/base/facts.h"

namespace shardproof::schedule {
namespace {

std::string NamesOf(const Nodes& nodes, ScheduleNode schedule_node, int32_t layer) {
  std::string text;
  for (const spf_node* node : nodes.Of(schedule_node, layer))
    text += (text.empty() ? "" : " ") + std::string(node->name);
  return text;
}

Case OddExpertsAndPrediction() {
  Case c;
  c.world = 4;
  InstanceSpec& spec = c.instances[0];
  spec.ep = 2;
  spec.model.layers = 2;
  spec.model.moe.experts = 4;
  spec.model.moe.layers = "odd";
  spec.model.mtp = spec.model.moe.shared = true;
  Derive(c);
  return c;
}

class NodesOfAModel : public testing::Test {
 protected:
  NodesOfAModel()
      : case_(OddExpertsAndPrediction()),
        facts_(case_.instances[0], 4),
        nodes_(facts_.model().Tables(facts_.Place(1)),
               facts_.model().Program(0, 0, facts_.Place(1))) {}
  const Case case_;
  const InstanceFacts facts_;
  const Nodes nodes_;
};

TEST_F(NodesOfAModel, Dense) {
  EXPECT_FALSE(nodes_.IsMoe(0));
  EXPECT_EQ(
      NamesOf(nodes_, ScheduleNode::kPreDispatch, 0),
      "layers.0.attn_norm layers.0.attention.qkv layers.0.attention.core layers.0.attention.proj");
  EXPECT_EQ(NamesOf(nodes_, ScheduleNode::kMlp, 0),
            "layers.0.mlp_norm layers.0.mlp.fc1 layers.0.mlp.swiglu layers.0.mlp.fc2");
  EXPECT_EQ(
      NamesOf(nodes_, ScheduleNode::kDispatch, 0) + NamesOf(nodes_, ScheduleNode::kCombine, 0), "");
}

TEST_F(NodesOfAModel, Experts) {
  EXPECT_TRUE(nodes_.IsMoe(1));
  EXPECT_EQ(
      NamesOf(nodes_, ScheduleNode::kPreDispatch, 1),
      "layers.1.attn_norm layers.1.attention.qkv layers.1.attention.core layers.1.attention.proj "
      "layers.1.mlp_norm layers.1.moe.shared.fc1 layers.1.moe.shared.swiglu "
      "layers.1.moe.shared.fc2 "
      "layers.1.moe.router layers.1.moe.permute layers.1.moe.counts layers.1.moe.splits");
  EXPECT_EQ(NamesOf(nodes_, ScheduleNode::kDispatch, 1),
            "layers.1.moe.dispatch layers.1.moe.dispatch_probs");
  EXPECT_EQ(NamesOf(nodes_, ScheduleNode::kMlp, 1),
            "layers.1.moe.experts.fc1 layers.1.moe.experts.act layers.1.moe.experts.fc2");
  EXPECT_EQ(NamesOf(nodes_, ScheduleNode::kCombine, 1),
            "layers.1.moe.combine layers.1.moe.unpermute");
  EXPECT_EQ(NamesOf(nodes_, ScheduleNode::kMtpPost, 1), "");
}

TEST_F(NodesOfAModel, MultiTokenPrediction) {
  EXPECT_EQ(nodes_.layers(), (std::vector<int32_t>{0, 1, 2}));
  const std::string names = NamesOf(nodes_, ScheduleNode::kPreDispatch, 2);
  EXPECT_TRUE(names.starts_with("mtp.embedding mtp.embed_norm mtp.hidden_norm mtp.eh_proj"))
      << names;
  EXPECT_EQ(NamesOf(nodes_, ScheduleNode::kMtpPost, 2), "mtp.final_norm");
}

TEST_F(NodesOfAModel, AroundTheLayers) {
  EXPECT_EQ(NamesOf(nodes_, ScheduleNode::kPre, -1), "input embedding");
  EXPECT_EQ(NamesOf(nodes_, ScheduleNode::kPost, -1), "final_norm head head.mtp");
  EXPECT_EQ(NamesOf(nodes_, ScheduleNode::kLoss, -1), "loss loss.mtp");
}

TEST_F(NodesOfAModel, OnlyMatrixProductsArePutOff) {
  EXPECT_TRUE(nodes_.Has(ScheduleNode::kMlp, Side::kWeights, 1, true));
  EXPECT_FALSE(nodes_.Has(ScheduleNode::kMlp, Side::kWeights, 1, false));
  EXPECT_FALSE(nodes_.Has(ScheduleNode::kCombine, Side::kWeights, 1, true));
  EXPECT_FALSE(nodes_.Has(ScheduleNode::kPost, Side::kWeights, -1, true));
  for (const spf_node* node : nodes_.Of(ScheduleNode::kPreDispatch, 1)) {
    const std::string name = node->name;
    const bool product = name.find("qkv") != std::string::npos ||
                         name.find("proj") != std::string::npos ||
                         name.find("fc") != std::string::npos;
    EXPECT_EQ(nodes_.Deferrable(node->id), product) << name;
  }
}

}  // namespace
}  // namespace shardproof::schedule
