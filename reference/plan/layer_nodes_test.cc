#include "reference/plan/layer_nodes.h"

#include <gtest/gtest.h>

#include "reference/plan/tables_for_test.h"

namespace reference {
namespace {

std::string Names(const NodeList& nodes) {
  std::string names;
  for (const spf_node* node : nodes) names += (names.empty() ? "" : " ") + std::string(node->name);
  return names;
}

TEST(LayerNodes, MoeLayer) {
  const TablesForTest tables("m");
  const ScheduleNodes nodes = DeriveScheduleNodes(tables.model(), tables.program());
  EXPECT_EQ(Names(nodes.pre_process), "input embedding");
  ASSERT_EQ(nodes.layers.size(), 1U);
  const LayerNodes& layer = nodes.layers[0];
  EXPECT_TRUE(layer.moe);
  EXPECT_STREQ(tables.model().modules[layer.module].type, "TransformerLayer");
  EXPECT_EQ(Names(layer[LayerNode::kPreDispatch]),
            "layers.0.attn_norm layers.0.qkv layers.0.core layers.0.proj layers.0.mlp_norm "
            "layers.0.shared.fc1 layers.0.shared.swiglu layers.0.shared.fc2 layers.0.router "
            "layers.0.permute layers.0.count layers.0.counts");
  EXPECT_EQ(Names(layer[LayerNode::kDispatch]), "layers.0.dispatch layers.0.dispatch_probs");
  EXPECT_EQ(Names(layer[LayerNode::kMlp]),
            "layers.0.experts.fc1 layers.0.experts.act layers.0.experts.fc2");
  EXPECT_EQ(Names(layer[LayerNode::kCombine]), "layers.0.combine layers.0.unpermute");
  EXPECT_EQ(Names(layer[LayerNode::kMtpPostProcess]), "");
  EXPECT_EQ(Names(nodes.post_process), "final_norm head");
  EXPECT_EQ(Names(nodes.loss), "loss");
}

TEST(LayerNodes, DenseLayerHasNoCommunication) {
  const TablesForTest tables("md");
  const ScheduleNodes nodes = DeriveScheduleNodes(tables.model(), tables.program());
  ASSERT_EQ(nodes.layers.size(), 2U);
  const LayerNodes& layer = nodes.layers[1];
  EXPECT_FALSE(layer.moe);
  EXPECT_EQ(Names(layer[LayerNode::kPreDispatch]),
            "layers.1.attn_norm layers.1.qkv layers.1.core layers.1.proj");
  EXPECT_EQ(Names(layer[LayerNode::kMlp]),
            "layers.1.mlp_norm layers.1.mlp.fc1 layers.1.mlp.swiglu layers.1.mlp.fc2");
  EXPECT_TRUE(layer[LayerNode::kDispatch].empty() && layer[LayerNode::kCombine].empty());
}

// The unit of the MTP layer is its inner TransformerLayer; what stands around it has nodes too.
TEST(LayerNodes, MtpLayer) {
  const TablesForTest tables("d", true);
  const ScheduleNodes nodes = DeriveScheduleNodes(tables.model(), tables.program());
  ASSERT_EQ(nodes.layers.size(), 2U);
  const LayerNodes& layer = nodes.layers[1];
  EXPECT_TRUE(layer.moe);
  EXPECT_STREQ(tables.model().modules[layer.module].type, "TransformerLayer");
  EXPECT_TRUE(Names(layer[LayerNode::kPreDispatch])
                  .starts_with("mtp.embedding mtp.embed_norm mtp.hidden_norm mtp.eh_proj "
                               "mtp.layer.attn_norm"));
  EXPECT_EQ(Names(layer[LayerNode::kCombine]), "mtp.layer.combine mtp.layer.unpermute");
  EXPECT_EQ(Names(layer[LayerNode::kMtpPostProcess]), "mtp.final_norm");
  EXPECT_EQ(Names(nodes.post_process), "final_norm head head.mtp");
  EXPECT_EQ(Names(nodes.loss), "loss loss.mtp");
}

TEST(LayerNodes, EveryNodeIsInOnePlace) {
  for (const char* layers : {"m", "d", "mm", "dmd", "mdmm"}) {
    for (bool mtp : {false, true}) {
      const TablesForTest tables(layers, mtp);
      const ScheduleNodes nodes = DeriveScheduleNodes(tables.model(), tables.program());
      size_t placed = nodes.pre_process.size() + nodes.post_process.size() + nodes.loss.size();
      for (const LayerNodes& layer : nodes.layers) {
        for (const NodeList& list : layer.lists) placed += list.size();
      }
      EXPECT_EQ(placed, static_cast<size_t>(tables.program().n_nodes)) << layers;
    }
  }
}

TEST(LayerNodes, MatrixProductsDeferTheirWeightGradients) {
  const TablesForTest tables("m");
  std::string deferred;
  for (int32_t i = 0; i < tables.program().n_nodes; ++i) {
    const spf_node& node = tables.program().nodes[i];
    if (DefersWeightGrads(tables.model(), node)) deferred += std::string(node.name) + " ";
  }
  EXPECT_EQ(deferred,
            "layers.0.qkv layers.0.proj layers.0.shared.fc1 layers.0.shared.fc2 "
            "layers.0.experts.fc1 layers.0.experts.fc2 head ");
}

}  // namespace
}  // namespace reference
