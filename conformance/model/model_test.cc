// Tables, programs, data and the static bound.
#include "conformance/model/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "conformance/model/data.h"
#include "conformance/model/node_bench.h"

namespace shardproof {
namespace {

std::vector<std::string> NodeNames(const Model& model, int64_t step, int64_t sample) {
  std::vector<std::string> names;
  const spf_program& program = model.Program(step, sample, 0);
  for (int32_t i = 0; i < program.n_nodes; ++i) names.push_back(program.nodes[i].name);
  return names;
}

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const spf_param* FindParam(const Model& model, const std::string& name, int32_t ep_rank = 0) {
  const spf_model& tables = model.Tables(ep_rank);
  for (int32_t i = 0; i < tables.n_params; ++i) {
    if (name == tables.params[i].name) return &tables.params[i];
  }
  return nullptr;
}

std::string Refusal(const ModelConfig& config, int64_t max_tokens) {
  try {
    Model model(config, max_tokens);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(ModelTest, ParentsPrecedeChildrenAndNamesAreUnique) {
  for (const ModelConfig& config : VariedConfigs()) {
    const Model model(config, 32);
    const spf_model& tables = model.Tables(0);
    std::set<std::string> names;
    EXPECT_EQ(tables.modules[0].parent, -1);
    for (int32_t i = 1; i < tables.n_modules; ++i) {
      EXPECT_GE(tables.modules[i].parent, 0);
      EXPECT_LT(tables.modules[i].parent, i);
    }
    for (int32_t i = 0; i < tables.n_params; ++i)
      EXPECT_TRUE(names.insert(tables.params[i].name).second);
  }
}

TEST(ModelTest, ALayerIsAbsentFromOddSteps) {
  ModelConfig config;
  config.unused = "step";
  const Model model(config, 32);
  EXPECT_TRUE(Has(NodeNames(model, 0, 1), "layers.0.mlp.fc1"));
  EXPECT_FALSE(Has(NodeNames(model, 1, 0), "layers.0.mlp.fc1"));
  EXPECT_TRUE(Has(NodeNames(model, 1, 0), "layers.1.mlp.fc1"));
}

TEST(ModelTest, ALayerIsAbsentFromOddSamples) {
  ModelConfig config;
  config.unused = "rank";
  config.frozen = "layer";  // layer 0 has no gradients to miss
  const Model model(config, 32);
  EXPECT_TRUE(Has(NodeNames(model, 1, 2), "layers.1.mlp.fc1"));
  EXPECT_FALSE(Has(NodeNames(model, 0, 1), "layers.1.mlp.fc1"));
}

TEST(ModelTest, AReusedLayerIsTwoSetsOfNodesOverOneSetOfParameters) {
  ModelConfig config;
  config.reused = true;
  const Model model(config, 32);
  const spf_program& program = model.Program(0, 0, 0);
  std::map<std::string, std::set<int32_t>> params, values;
  for (int32_t i = 0; i < program.n_nodes; ++i) {
    const spf_uses& uses = program.nodes[i].uses[SPF_FWD];
    for (int32_t u = 0; u < uses.n; ++u) {
      (uses.use[u].table == SPF_IN_PARAM ? params : values)[program.nodes[i].name].insert(
          uses.use[u].id);
    }
  }
  EXPECT_EQ(params["layers.1.mlp.fc1"], params["layers.1.mlp.fc1.again"]);
  EXPECT_NE(values["layers.1.mlp.fc1"], values["layers.1.mlp.fc1.again"]);
  EXPECT_EQ(params.count("layers.0.mlp.fc1.again"), 0u);
}

TEST(ModelTest, OnlyValuesWithSeveralReadersAreAddedTo) {
  for (const ModelConfig& config : VariedConfigs()) {
    const Model model(config, 32);
    for (int64_t step = 0; step < 2; ++step) {
      const spf_program& program = model.Program(step, step, 0);
      std::map<int32_t, std::vector<int32_t>> writers;
      for (int32_t i = 0; i < program.n_nodes; ++i) {
        const spf_uses& uses = program.nodes[i].uses[SPF_DGRAD];
        if (program.nodes[i].kind == SPF_NODE_ALL_REDUCE) continue;  // no reader
        for (int32_t u = 0; u < uses.n; ++u) {
          if (uses.use[u].table == SPF_IN_DACT && uses.use[u].access != SPF_READ) {
            writers[uses.use[u].id].push_back(uses.use[u].access);
          }
        }
      }
      for (const auto& [value, accesses] : writers) {
        for (int32_t access : accesses)
          EXPECT_EQ(access, accesses.size() == 1 ? SPF_WRITE : SPF_ADD) << value;
      }
    }
  }
}

TEST(ModelTest, FrozenParametersHaveNoGradient) {
  for (const char* frozen : {"embedding", "layer", "middle", "last", "norms"}) {
    ModelConfig config;
    config.layers = 3;
    config.frozen = frozen;
    const Model model(config, 32);
    for (int32_t n = 0; n < model.node_count(); ++n) {
      const spf_uses& uses = model.Node(n, 0).uses[SPF_WGRAD];
      for (int32_t u = 0; u < uses.n; ++u) {
        if (uses.use[u].table != SPF_IN_GRAD) continue;
        EXPECT_EQ(model.Tables(0).params[uses.use[u].id].flags & SPF_PARAM_FROZEN, 0u);
      }
    }
  }
}

TEST(ModelTest, AFrozenLayerIsTheOneThatIsNamed) {
  for (const auto& [frozen, layer] :
       {std::pair{"layer", "layers.0."}, {"middle", "layers.1."}, {"last", "layers.2."}}) {
    ModelConfig config;
    config.layers = 3;
    config.frozen = frozen;
    const Model model(config, 32);
    const spf_model& tables = model.Tables(0);
    for (int32_t id = 0; id < tables.n_params; ++id) {
      const std::string name = tables.params[id].name;
      EXPECT_EQ((tables.params[id].flags & SPF_PARAM_FROZEN) != 0, name.starts_with(layer)) << name;
    }
  }
}

TEST(ModelTest, NoGradientFlowsIntoAFrozenEmbedding) {
  ModelConfig config;
  config.frozen = "embedding";
  const Model model(config, 32);
  const spf_program& program = model.Program(0, 0, 0);
  ASSERT_STREQ(program.nodes[2].name, "layers.0.attn_norm");
  EXPECT_EQ(program.nodes[1].uses[SPF_BWD].n, 0);
  EXPECT_EQ(program.nodes[2].uses[SPF_DGRAD].n, 0);
  EXPECT_GT(program.nodes[2].uses[SPF_WGRAD].n, 0);
}

TEST(ModelTest, ATiedHeadUsesTheEmbeddingsWeight) {
  ModelConfig config;
  config.tied = true;
  const Model model(config, 32);
  EXPECT_EQ(FindParam(model, "head.weight"), nullptr);
  const spf_program& program = model.Program(0, 0, 0);
  const spf_node &embed = program.nodes[1], &head = program.nodes[program.n_nodes - 2];
  EXPECT_EQ(embed.uses[SPF_FWD].use[0].id, head.uses[SPF_FWD].use[0].id);
  EXPECT_EQ(head.uses[SPF_FWD].use[0].table, SPF_IN_PARAM);
}

TEST(ModelTest, EachEpRankHasItsOwnExperts) {
  ModelConfig config;
  config.experts = true;
  config.ep = 2;
  const Model model(config, 32);
  ASSERT_NE(FindParam(model, "layers.1.experts.1.fc1.weight", 1), nullptr);
  EXPECT_EQ(FindParam(model, "layers.1.experts.1.fc1.weight", 1)->flags,
            static_cast<uint32_t>(SPF_PARAM_EXPERT));
  EXPECT_EQ(FindParam(model, "layers.1.experts.1.fc1.weight", 0), nullptr);
  EXPECT_NE(FindParam(model, "layers.0.mlp.fc1.weight", 1), nullptr);
  const auto id = static_cast<int32_t>(FindParam(model, "layers.1.experts.0.fc1.weight") -
                                       model.Tables(0).params);
  std::vector<float> a(32), b(32);
  model.InitialValue(id, 0, 0, 32, a.data());
  model.InitialValue(id, 1, 0, 32, b.data());
  EXPECT_NE(a, b);
}

TEST(ModelTest, OddSizesHaveAParameterOfOneElementAndNoWidthThatAWorldDivides) {
  ModelConfig config;
  config.odd_sizes = true;
  const Model model(config, 32);
  ASSERT_NE(FindParam(model, "gain.weight"), nullptr);
  EXPECT_EQ(FindParam(model, "gain.weight")->numel, 1);
  const spf_param& head = *FindParam(model, "head.weight");
  for (int64_t world : {2, 3, 4, 5, 6, 8, 16, 64}) {
    EXPECT_NE(head.shape[0] % world, 0);
    EXPECT_NE(head.shape[1] % world, 0);
    EXPECT_NE(FindParam(model, "layers.0.mlp.fc2.weight")->shape[1] % world, 0);
  }
}

TEST(ModelTest, InitialValuesDependOnNothingButElementAndName) {
  const Model model(ModelConfig{}, 32);
  std::vector<float> whole(64), part(10);
  model.InitialValue(0, 0, 0, 64, whole.data());
  model.InitialValue(0, 0, 50, 10, part.data());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 50));
}

TEST(ModelTest, MoreTokensThanTheBoundAreRefused) {
  EXPECT_EQ(Refusal(ModelConfig{}, 1040), "");
  const std::string why = Refusal(ModelConfig{}, 1041);
  EXPECT_NE(why.find("1041 tokens"), std::string::npos) << why;
  EXPECT_NE(why.find("2^24"), std::string::npos) << why;
}

TEST(ModelTest, TheBoundCountsOddDivisorsAndUses) {
  ModelConfig config;
  config.d_odd = 3;
  EXPECT_EQ(Refusal(config, 346), "");
  EXPECT_NE(Refusal(config, 347), "");
  config.d_odd = 1;
  config.tied = true;
  EXPECT_EQ(Refusal(config, 520), "");
  EXPECT_NE(Refusal(config, 700), "");
  config.tied = false;
  config.reused = true;
  EXPECT_EQ(Refusal(config, 520), "");
  EXPECT_NE(Refusal(config, 521), "");
}

TEST(ModelTest, TheNarrowProfileHoldsTwoHundredFiftySixTokens) {
  ModelConfig config;
  config.narrow = true;
  EXPECT_EQ(Refusal(config, 256), "");
  EXPECT_NE(Refusal(config, 257).find("bf16"), std::string::npos);
  config.tied = true;
  EXPECT_EQ(Refusal(config, 128), "");
  EXPECT_NE(Refusal(config, 129), "");
}

TEST(ModelTest, WidthsBeyondTheBoundAreRefusedByTheNameOfTheSum) {
  ModelConfig config;
  config.width = 66;
  EXPECT_NE(Refusal(config, 32).find("norm: sum of squares"), std::string::npos);
  config = ModelConfig{};
  config.ffn = 2000;
  EXPECT_NE(Refusal(config, 32).find("over ffn"), std::string::npos);
  config = ModelConfig{};
  config.vocab = 5000;
  EXPECT_NE(Refusal(config, 32).find("over vocab"), std::string::npos);
}

TEST(ModelTest, UnknownWordsAndSizesAreRefusedByField) {
  ModelConfig config;
  config.frozen = "head";
  EXPECT_NE(Refusal(config, 32).find("frozen = 'head'"), std::string::npos);
  config = ModelConfig{};
  config.heads = 3;
  EXPECT_NE(Refusal(config, 32).find("heads = 3"), std::string::npos);
  config = ModelConfig{};
  config.d_odd = 2;
  EXPECT_NE(Refusal(config, 32).find("d_odd = 2"), std::string::npos);
}

TEST(DataTest, NoTwoSamplesOfAStepAreEqual) {
  for (int32_t vocab : {32, 37}) {
    for (int32_t sequence : {1, 2, 8}) {
      const DataShape shape{vocab, sequence, 5};
      std::set<std::vector<int32_t>> seen;
      for (int64_t sample = 0; sample < 1024; ++sample) {
        std::vector<int32_t> both(static_cast<size_t>(2 * sequence));
        FillSample(shape, 3, sample, both.data(), both.data() + sequence);
        for (int32_t token : both) EXPECT_TRUE(token >= 0 && token < vocab);
        EXPECT_TRUE(seen.insert(both).second) << sample;
      }
    }
  }
}

TEST(DataTest, StepsAndSeedsDiffer) {
  auto sample = [](uint64_t seed, int64_t step) {
    std::vector<int32_t> both(16);
    FillSample({32, 8, seed}, step, 0, both.data(), both.data() + 8);
    return both;
  };
  EXPECT_NE(sample(1, 0), sample(1, 1));
  EXPECT_NE(sample(1, 0), sample(2, 0));
  EXPECT_EQ(sample(1, 0), sample(1, 0));
}

}  // namespace
}  // namespace shardproof
