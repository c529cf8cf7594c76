// Which part of the model does each pipeline rank have, and what passes between stages?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "conformance/model/model.h"

namespace shardproof {
namespace {

ModelConfig Interleaved() {
  ModelConfig config;
  config.layers = 4;
  config.pp = config.chunks = 2;
  return config;
}

std::map<std::string, const spf_node*> Nodes(const Model& model, ModelRank rank) {
  std::map<std::string, const spf_node*> nodes;
  const spf_program& program = model.Program(0, 0, rank);
  for (int32_t i = 0; i < program.n_nodes; ++i) nodes[program.nodes[i].name] = &program.nodes[i];
  return nodes;
}

std::map<std::string, uint32_t> Flags(const Model& model, ModelRank rank) {
  std::map<std::string, uint32_t> flags;
  const spf_model& tables = model.Tables(rank);
  for (int32_t i = 0; i < tables.n_values; ++i)
    flags[tables.values[i].name] = tables.values[i].flags;
  return flags;
}

std::set<std::string> Params(const Model& model, ModelRank rank) {
  std::set<std::string> names;
  const spf_model& tables = model.Tables(rank);
  for (int32_t i = 0; i < tables.n_params; ++i) names.insert(tables.params[i].name);
  return names;
}

std::string Refusal(const ModelConfig& config) {
  try {
    const Model model(config, 32);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(PipelineTablesTest, ARankHasItsStagesLayersUnderTheirGlobalNumbers) {
  const Model model(Interleaved(), 32);
  const auto first = Nodes(model, {0, 0}), second = Nodes(model, {0, 1});
  EXPECT_EQ(first.at("layers.0.attn_norm")->chunk, 0);
  EXPECT_EQ(first.at("layers.2.attn_norm")->chunk, 1);
  EXPECT_EQ(first.at("layers.2.attn_norm")->layer, 2);
  EXPECT_EQ(first.count("layers.1.attn_norm"), 0u);
  EXPECT_EQ(second.at("layers.1.attn_norm")->chunk, 0);
  EXPECT_EQ(second.at("layers.3.attn_norm")->chunk, 1);
  EXPECT_EQ(second.at("head")->chunk, 1);
  EXPECT_EQ(first.count("head") + second.count("embedding"), 0u);
}

TEST(PipelineTablesTest, TokensEnterTheFirstStageAndLabelsTheLast) {
  const Model model(Interleaved(), 32);
  const auto first = Nodes(model, {0, 0}), second = Nodes(model, {0, 1});
  EXPECT_EQ(first.at("input")->uses[SPF_FWD].n, 1);
  EXPECT_EQ(first.count("input.labels"), 0u);
  EXPECT_EQ(second.at("input.labels")->uses[SPF_FWD].n, 1);
  EXPECT_EQ(second.at("input.labels")->kind, SPF_NODE_INPUT);
  EXPECT_EQ(second.at("input.labels")->chunk, 1);
  EXPECT_EQ(Flags(model, {0, 0}).count("labels") + Flags(model, {0, 1}).count("tokens"), 0u);
}

TEST(PipelineTablesTest, WhatAStageSendsTheNextOneReceives) {
  const Model model(Interleaved(), 32);
  auto first = Flags(model, {0, 0}), second = Flags(model, {0, 1});
  const uint32_t next = SPF_VALUE_TO_NEXT, prev = SPF_VALUE_FROM_PREV;
  for (const char* name : {"layers.0.mlp.fc2", "layers.2.mlp.fc2"}) {
    EXPECT_EQ(first.at(name), next) << name;
    EXPECT_EQ(second.at(name), prev) << name;
  }
  EXPECT_EQ(second.at("layers.1.mlp.fc2"), next);
  EXPECT_EQ(first.at("layers.1.mlp.fc2"), prev);
  EXPECT_EQ(second.at("layers.3.mlp.fc2"), 0u);
  auto flagged = [](const std::map<std::string, uint32_t>& flags) {
    return std::count_if(flags.begin(), flags.end(), [](const auto& value) {
      return (value.second & (SPF_VALUE_TO_NEXT | SPF_VALUE_FROM_PREV)) != 0;
    });
  };
  EXPECT_EQ(flagged(first), 3);
  EXPECT_EQ(flagged(second), 3);
}

TEST(PipelineTablesTest, GradientsOfWhatComesFromThePreviousStageAreComputed) {
  const Model model(Interleaved(), 32);
  const spf_model& tables = model.Tables({0, 1});
  const auto nodes = Nodes(model, {0, 1});
  int found = 0;
  for (const char* name : {"layers.1.attn_norm", "layers.1.attention.proj"}) {
    const spf_uses& uses = nodes.at(name)->uses[SPF_DGRAD];
    for (int32_t i = 0; i < uses.n; ++i) {
      found += uses.use[i].table == SPF_IN_DACT && uses.use[i].access == SPF_ADD &&
               std::string(tables.values[uses.use[i].id].name) == "layers.0.mlp.fc2";
    }
  }
  EXPECT_EQ(found, 2);
}

TEST(PipelineTablesTest, EveryParameterIsOnOneStage) {
  ModelConfig config = Interleaved();
  config.moe.experts = 4;
  config.ep = 2;
  config.root_param = true;
  const Model model(config, 32);
  config.pp = config.chunks = 1;
  const Model whole(config, 32);
  for (int32_t ep = 0; ep < 2; ++ep) {
    std::set<std::string> both = Params(model, {ep, 0});
    const std::set<std::string> second = Params(model, {ep, 1});
    for (const std::string& name : second) EXPECT_TRUE(both.insert(name).second) << name;
    EXPECT_EQ(both, Params(whole, ep));
  }
}

TEST(PipelineTablesTest, WhatCannotBeSplitIsRefused) {
  ModelConfig config = Interleaved();
  config.layers = 6;
  EXPECT_NE(Refusal(config).find("pp * chunks = 4"), std::string::npos) << Refusal(config);
  config = Interleaved();
  config.tied = true;
  EXPECT_NE(Refusal(config).find("tied"), std::string::npos);
  config = Interleaved();
  config.mtp = true;
  config.moe.experts = 4;
  EXPECT_NE(Refusal(config).find("mtp"), std::string::npos);
  config = Interleaved();
  config.unused = "step";
  EXPECT_NE(Refusal(config).find("unused"), std::string::npos);
  config = Interleaved();
  config.pp = 1;
  EXPECT_NE(Refusal(config).find("chunks = 2"), std::string::npos);
  EXPECT_EQ(Refusal(Interleaved()), "");
}

TEST(PipelineTablesTest, ThereIsNoRankBeyondTheGrid) {
  const Model model(Interleaved(), 32);
  EXPECT_THROW(model.Tables({0, 2}), std::out_of_range);
  EXPECT_THROW(model.Tables(1), std::out_of_range);
}

}  // namespace
}  // namespace shardproof
