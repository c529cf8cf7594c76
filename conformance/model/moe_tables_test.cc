// Modules, parameters, values and nodes of routed experts; what a config may ask of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "conformance/model/model.h"

namespace shardproof {
namespace {

ModelConfig Routed() {
  ModelConfig config;
  config.layers = 1;
  config.moe.experts = 4;
  config.ep = 2;
  return config;
}

// Everything that the tables say of one rank, by name.
struct Tables {
  explicit Tables(const Model& model, ModelRank rank = {}) : spf(model.Tables(rank)) {
    for (int32_t i = 0; i < spf.n_modules; ++i) modules[spf.modules[i].name] = spf.modules[i].type;
    for (int32_t i = 0; i < spf.n_params; ++i) params[spf.params[i].name] = spf.params[i];
    for (int32_t i = 0; i < spf.n_values; ++i) values[spf.values[i].name] = spf.values[i];
    const spf_program& program = model.Program(0, 0, rank);
    for (int32_t i = 0; i < program.n_nodes; ++i) {
      order.push_back(program.nodes[i].name);
      nodes[order.back()] = program.nodes[i];
    }
  }
  std::string ValueName(int32_t id) const { return id < 0 ? "-" : spf.values[id].name; }
  // Names of the values that a phase touches so, in order.
  std::vector<std::string> Touched(const std::string& node, spf_phase phase, spf_table table,
                                   spf_access access) const {
    std::vector<std::string> names;
    const spf_uses& uses = nodes.at(node).uses[phase];
    for (int32_t i = 0; i < uses.n; ++i) {
      if (uses.use[i].table != table || uses.use[i].access != access) continue;
      const bool param = table == SPF_IN_PARAM || table == SPF_IN_GRAD;
      names.push_back(param ? spf.params[uses.use[i].id].name : ValueName(uses.use[i].id));
    }
    return names;
  }

  const spf_model& spf;
  std::map<std::string, std::string> modules;
  std::map<std::string, spf_param> params;
  std::map<std::string, spf_value> values;
  std::map<std::string, spf_node> nodes;
  std::vector<std::string> order;
};

using Names = std::vector<std::string>;

std::string Refusal(const ModelConfig& config, int64_t max_tokens = 32) {
  try {
    const Model model(config, max_tokens);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(MoeTablesTest, NodesComeInTheOrderOfTheLayer) {
  ModelConfig config = Routed();
  config.moe.shared = true;
  const Model model(config, 32);
  const std::string p = "layers.0.", m = p + "moe.";
  const Names expected = {"input",
                          "embedding",
                          p + "attn_norm",
                          p + "attention.qkv",
                          p + "attention.core",
                          p + "attention.proj",
                          p + "mlp_norm",
                          m + "shared.fc1",
                          m + "shared.swiglu",
                          m + "shared.fc2",
                          m + "router",
                          m + "permute",
                          m + "counts",
                          m + "splits",
                          m + "dispatch",
                          m + "dispatch_probs",
                          m + "experts.fc1",
                          m + "experts.act",
                          m + "experts.fc2",
                          m + "combine",
                          m + "unpermute",
                          "final_norm",
                          "head",
                          "loss"};
  EXPECT_EQ(Tables(model).order, expected);
}

TEST(MoeTablesTest, ARankHasItsOwnExpertsUnderOneContainer) {
  const Model model(Routed(), 32);
  const Tables first(model, 0), second(model, 1);
  EXPECT_EQ(first.modules.at("layers.0.moe"), "MoE");
  EXPECT_EQ(first.modules.at("layers.0.moe.router"), "Router");
  EXPECT_EQ(first.modules.at("layers.0.moe.dispatch"), "Dispatcher");
  EXPECT_EQ(first.modules.at("layers.0.moe.experts"), "Experts");
  EXPECT_EQ(first.modules.at("layers.0.moe.experts.1"), "Expert");
  EXPECT_EQ(first.modules.count("layers.0.moe.experts.2"), 0u);
  EXPECT_EQ(second.modules.at("layers.0.moe.experts.2"), "Expert");
  EXPECT_EQ(second.params.at("layers.0.moe.experts.3.fc2.weight").flags,
            static_cast<uint32_t>(SPF_PARAM_EXPERT));
  EXPECT_EQ(first.params.at("layers.0.moe.router.weight").flags, 0u);
  EXPECT_EQ(first.params.at("layers.0.moe.router.weight").shape[0], 4);
  EXPECT_EQ(first.spf.n_params, second.spf.n_params);
  EXPECT_EQ(first.order, second.order);
}

TEST(MoeTablesTest, RowsAreDynamicByTheCountsThatGovernThem) {
  const Model model(Routed(), 32);
  const Tables t(model);
  const std::string m = "layers.0.moe.";
  EXPECT_EQ(t.values.at(m + "permuted").flags, 0u);  // every choice has a row
  EXPECT_EQ(t.values.at(m + "permuted").max_rows, 8 * 2);
  EXPECT_EQ(t.values.at(m + "dispatched").flags, static_cast<uint32_t>(SPF_VALUE_DYNAMIC));
  EXPECT_EQ(t.values.at(m + "dispatched").max_rows, 2 * 8 * 2);
  EXPECT_EQ(t.values.at(m + "send_counts").flags, static_cast<uint32_t>(SPF_VALUE_COUNTS));
  EXPECT_EQ(t.values.at(m + "send_counts").dtype, SPF_I64);
  for (const char* name :
       {"dispatched", "dispatched_probs", "experts.fc1", "experts.act", "experts.fc2"})
    EXPECT_EQ(t.ValueName(t.values.at(m + name).rows_from), m + "recv_counts") << name;
  EXPECT_EQ(t.ValueName(t.nodes.at(m + "dispatch").send_counts), m + "send_counts");
  EXPECT_EQ(t.ValueName(t.nodes.at(m + "dispatch").recv_counts), m + "recv_counts");
  EXPECT_EQ(t.ValueName(t.nodes.at(m + "combine").send_counts), m + "recv_counts");
  EXPECT_EQ(t.ValueName(t.nodes.at(m + "combine").recv_counts), m + "send_counts");
  EXPECT_EQ(t.nodes.at(m + "counts").send_counts, -1);
}

TEST(MoeTablesTest, ACapacityMakesTheSendersRowsDynamicAndPaddingMakesNothingSo) {
  ModelConfig config = Routed();
  config.moe.capacity_percent = 75;  // 3 rows per expert
  const Model drop(config, 32);
  const Tables dropped(drop);
  const std::string m = "layers.0.moe.";
  EXPECT_EQ(dropped.ValueName(dropped.values.at(m + "permuted").rows_from), m + "send_counts");
  EXPECT_EQ(dropped.values.at(m + "permuted").max_rows, 4 * 3);
  EXPECT_EQ(dropped.ValueName(dropped.values.at(m + "combined").rows_from), m + "send_counts");
  config.moe.pad = true;
  const Model pad(config, 32);
  const Tables padded(pad);
  for (const auto& [name, value] : padded.values)
    EXPECT_EQ(value.flags & ~SPF_VALUE_LOSS, 0u) << name;
  EXPECT_EQ(padded.values.at(m + "permuted").max_rows, 4 * 3);
  EXPECT_EQ(padded.values.at(m + "dispatched").max_rows, 4 * 3);
  EXPECT_EQ(padded.nodes.count(m + "counts") + padded.nodes.count(m + "splits"), 0u);
  EXPECT_EQ(padded.nodes.at(m + "dispatch").send_counts, -1);
  EXPECT_EQ(padded.nodes.at(m + "combine").recv_counts, -1);
}

TEST(MoeTablesTest, ExchangesMoveGradientsBackAndHaveNoWeights) {
  const Model model(Routed(), 32);
  const Tables t(model);
  const std::string m = "layers.0.moe.";
  EXPECT_EQ(t.nodes.at(m + "dispatch").kind, SPF_NODE_EXCHANGE);
  for (spf_phase phase : {SPF_BWD, SPF_DGRAD}) {
    EXPECT_EQ(t.Touched(m + "dispatch", phase, SPF_IN_DACT, SPF_READ), Names{m + "dispatched"});
    EXPECT_EQ(t.Touched(m + "dispatch", phase, SPF_IN_DACT, SPF_WRITE), Names{m + "permuted"});
  }
  EXPECT_EQ(t.nodes.at(m + "dispatch").uses[SPF_WGRAD].n, 0);
  EXPECT_EQ(t.nodes.at(m + "counts").uses[SPF_BWD].n, 0);
  EXPECT_EQ(t.nodes.at(m + "splits").uses[SPF_BWD].n, 0);
  EXPECT_EQ(t.Touched(m + "permute", SPF_DGRAD, SPF_IN_DACT, SPF_ADD), Names{"layers.0.mlp_norm"});
  EXPECT_EQ(t.Touched(m + "experts.fc1", SPF_FWD, SPF_IN_PARAM, SPF_READ),
            (Names{m + "experts.0.fc1.weight", m + "experts.1.fc1.weight"}));
}

TEST(MoeTablesTest, AFrozenBiasComesWithSigmoidScoresOnly) {
  ModelConfig config = Routed();
  EXPECT_EQ(Tables(Model(config, 32)).params.count("layers.0.moe.router.expert_bias"), 0u);
  config.moe.score = "sigmoid";
  const Model model(config, 32);
  EXPECT_EQ(Tables(model).params.at("layers.0.moe.router.expert_bias").flags,
            static_cast<uint32_t>(SPF_PARAM_FROZEN));
}

TEST(MoeTablesTest, LayersAreRoutedWhereTheConfigSaysSo) {
  const std::map<std::string, std::string> routed = {
      {"all", "1111"}, {"odd", "0101"}, {"even", "1010"}, {"last", "0001"}, {"first", "1000"}};
  for (const auto& [word, expected] : routed) {
    ModelConfig config = Routed();
    config.layers = 4;
    config.moe.layers = word;
    const Model model(config, 32);
    const Tables t(model);
    std::string found;
    for (int layer = 0; layer < 4; ++layer)
      found += t.modules.count("layers." + std::to_string(layer) + ".moe") != 0 ? '1' : '0';
    EXPECT_EQ(found, expected) << word;
  }
}

TEST(MoeTablesTest, MultiTokenPredictionIsOneRoutedLayerMore) {
  ModelConfig config = Routed();
  config.mtp = true;
  config.moe.layers = "first";
  const Model model(config, 32);
  const Tables t(model);
  EXPECT_EQ(t.modules.at("mtp"), "MTP");
  EXPECT_EQ(t.modules.at("mtp.layer"), "TransformerLayer");
  EXPECT_EQ(t.params.at("mtp.eh_proj.weight").shape[1], 32);
  const auto begin = std::find(t.order.begin(), t.order.end(), "mtp.embedding");
  ASSERT_NE(begin, t.order.end());
  EXPECT_EQ(Names(begin, begin + 4),
            (Names{"mtp.embedding", "mtp.embed_norm", "mtp.hidden_norm", "mtp.eh_proj"}));
  EXPECT_EQ(Names(t.order.end() - 6, t.order.end()),
            (Names{"mtp.final_norm", "final_norm", "head", "loss", "head.mtp", "loss.mtp"}));
  for (const char* name : {"mtp.embedding", "mtp.layer.moe.dispatch", "mtp.final_norm"})
    EXPECT_EQ(t.nodes.at(name).layer, 1) << name;
  EXPECT_EQ(t.nodes.at("final_norm").layer, -1);
  EXPECT_EQ(t.Touched("mtp.embedding", SPF_FWD, SPF_IN_PARAM, SPF_READ), Names{"embedding.weight"});
  EXPECT_EQ(t.Touched("head.mtp", SPF_FWD, SPF_IN_PARAM, SPF_READ), Names{"head.weight"});
  EXPECT_EQ(t.values.at("mtp_loss").flags, 0u);
}

TEST(MoeTablesTest, RefusalsNameTheFieldAndItsValue) {
  auto refusal = [](auto change) {
    ModelConfig config = Routed();
    change(config, config.moe);
    return Refusal(config);
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"ep = 3", refusal([](ModelConfig& c, MoeConfig&) { c.ep = 3; })},
      {"moe.top_k = 5", refusal([](ModelConfig&, MoeConfig& m) { m.top_k = 5; })},
      {"moe.groups = 3", refusal([](ModelConfig&, MoeConfig& m) { m.groups = 3; })},
      {"moe.top_groups = 2",
       refusal([](ModelConfig&, MoeConfig& m) { m.top_k = 3, m.groups = m.top_groups = 2; })},
      {"group has only 1", refusal([](ModelConfig&, MoeConfig& m) { m.groups = 4; })},
      {"moe.pad without", refusal([](ModelConfig&, MoeConfig& m) { m.pad = true; })},
      {"moe.capacity_percent = -1",
       refusal([](ModelConfig&, MoeConfig& m) { m.capacity_percent = -1; })},
      {"moe.score = 'hash'", refusal([](ModelConfig&, MoeConfig& m) { m.score = "hash"; })},
      {"moe.layers = 'some'", refusal([](ModelConfig&, MoeConfig& m) { m.layers = "some"; })},
      {"moe.skew = 'two'", refusal([](ModelConfig&, MoeConfig& m) { m.skew = "two"; })},
      {"moe.skew = empty",
       refusal([](ModelConfig&, MoeConfig& m) { m.skew = "empty", m.top_k = 4; })},
      {"moe.skew = rank",
       refusal([](ModelConfig&, MoeConfig& m) { m.skew = "rank", m.top_k = 3; })},
      {"experts and moe.experts", refusal([](ModelConfig& c, MoeConfig&) { c.experts = true; })},
      {"unused = rank", refusal([](ModelConfig& c, MoeConfig&) { c.unused = "rank"; })},
      {"mtp without", refusal([](ModelConfig& c, MoeConfig& m) { c.mtp = true, m.experts = 0; })},
  };
  for (const auto& [expected, message] : cases)
    EXPECT_NE(message.find(expected), std::string::npos) << expected << ": '" << message << "'";
  EXPECT_EQ(Refusal(Routed()), "");
}

TEST(MoeTablesTest, TheBoundCountsTheSecondUseOfHeadAndEmbedding) {
  ModelConfig config = Routed();
  EXPECT_EQ(Refusal(config, 1040), "");
  config.mtp = true;
  EXPECT_EQ(Refusal(config, 520), "");
  EXPECT_NE(Refusal(config, 521).find("521 tokens"), std::string::npos);
  config.tied = true;
  EXPECT_EQ(Refusal(config, 345), "");
  EXPECT_NE(Refusal(config, 346), "");
  config.narrow = true;
  EXPECT_EQ(Refusal(config, 64), "");
  EXPECT_NE(Refusal(config, 65).find("bf16"), std::string::npos);
}

TEST(MoeTablesTest, TooManyExpertsAreRefusedByTheNameOfTheSum) {
  ModelConfig config = Routed();
  config.moe.experts = 1042;
  EXPECT_NE(Refusal(config).find("router dgrad over experts"), std::string::npos)
      << Refusal(config);
}

}  // namespace
}  // namespace shardproof
