// What the tables of a model split over tp say; split over one rank it computes the bits of a model
// that knows nothing of tp, but for the order of rows.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "conformance/model/network.h"
#include "conformance/model/node_bench.h"

namespace shardproof {
namespace {

// Where row r of a model that knows nothing of tp is in one that does.
int64_t RowWithTp(const std::string& name, const Dims& d, int64_t r) {
  if (name.find(".qkv") != std::string::npos) {
    const int64_t part = r / d.inner(), head = r % d.inner() / d.head_dim;
    return (head * 3 + part) * d.head_dim + r % d.head_dim;
  }
  const bool pairs = name.find(".mlp.fc1") != std::string::npos;
  return pairs ? r % d.ffn * 2 + r / d.ffn : r;
}

TEST(TensorParallel, OnlyTheOrderOfRowsDiffersFromAModelWithoutIt) {
  ModelConfig config;
  config.biases = true;
  const NodeBench plain(config), split(Split(1, config));
  const Dims dims = DimsOf(config);
  Blocks of_plain = plain.Start(), of_split = split.Start();
  const auto for_each = [&](const auto& visit) {
    for (int32_t id = 0; id < plain.tables().n_params; ++id) {
      const spf_param& param = plain.tables().params[id];
      const int64_t cols = param.n_dim == 2 ? param.shape[1] : 1;
      const int32_t other = FindParam(split.tables(), param.name);
      for (int64_t i = 0; i < param.numel; ++i)
        visit(id, i, other, RowWithTp(param.name, dims, i / cols) * cols + i % cols);
    }
  };
  for_each([&](int32_t id, int64_t at, int32_t other, int64_t there) {
    of_plain.Floats(SPF_IN_PARAM, id)[at] = of_split.Floats(SPF_IN_PARAM, other)[there];
  });
  plain.RunSample(of_plain, 0, 0);
  split.RunSample(of_split, 0, 0);
  int64_t different = 0, compared = 0, moved = 0;
  for_each([&](int32_t id, int64_t at, int32_t other, int64_t there) {
    ++compared;
    moved += at == there ? 0 : 1;
    different +=
        of_plain.Floats(SPF_IN_GRAD, id)[at] == of_split.Floats(SPF_IN_GRAD, other)[there] ? 0 : 1;
  });
  EXPECT_EQ(different, 0);
  EXPECT_GT(moved, 1000);
  EXPECT_GT(compared, 5000);
}

TEST(TensorParallel, TablesSayWhatIsSplit) {
  const NodeBench bench(Split(2), 32, ModelRank(0, 0, 1));
  const spf_model& tables = bench.tables();
  const auto text = [&](const std::string& name) {
    const spf_param& param = tables.params[FindParam(tables, name)];
    std::string shape;
    for (int32_t i = 0; i < param.n_dim; ++i)
      shape += (i > 0 ? " x " : "") + std::to_string(param.shape[i]);
    return shape + ", tp_dim " + std::to_string(param.tp_dim);
  };
  EXPECT_EQ(text("layers.0.attention.qkv.weight"), "24 x 16, tp_dim 0");
  EXPECT_EQ(text("layers.0.attention.proj.weight"), "16 x 8, tp_dim 1");
  EXPECT_EQ(text("layers.0.mlp.fc1.weight"), "24 x 16, tp_dim 0");
  EXPECT_EQ(text("layers.0.mlp.fc2.weight"), "16 x 12, tp_dim 1");
  EXPECT_EQ(text("layers.0.mlp_norm.weight"), "16, tp_dim -1");
  EXPECT_EQ(text("head.weight"), "32 x 16, tp_dim -1");
}

TEST(TensorParallel, TablesSayThatTheVocabularyIsSplit) {
  ModelConfig config = Split(4);
  config.heads = 4;
  config.biases = config.vocab_parallel = true;
  const NodeBench bench(config, 32, ModelRank(0, 0, 1));
  const spf_model& tables = bench.tables();
  for (const char* name : {"embedding.weight", "head.weight", "head.bias"}) {
    const spf_param& param = tables.params[FindParam(tables, name)];
    EXPECT_EQ(param.tp_dim, 0) << name;
    EXPECT_EQ(param.shape[0], 8) << name;
  }
  EXPECT_EQ(tables.values[FindValue(tables, "head")].row_elems, 8);
  EXPECT_EQ(tables.values[FindValue(tables, "loss.max.gather")].max_rows, 4 * 8);
}

TEST(TensorParallel, ASizeThatTpDoesNotDivideIsRefused) {
  EXPECT_THROW(Model(Split(4), 32), std::invalid_argument);  // two heads
  ModelConfig whole;
  whole.tp = 2;
  EXPECT_THROW(Model(whole, 32), std::invalid_argument);  // nothing is split
  ModelConfig ffn;
  ffn.ffn = 25;
  EXPECT_THROW(Model(Split(2, ffn), 32), std::invalid_argument);
  ModelConfig parts;
  parts.sequence_parallel = true;
  EXPECT_THROW(Model(parts, 32), std::invalid_argument);  // nothing is split
  parts.sequence = 7;
  EXPECT_THROW(Model(Split(2, parts), 32), std::invalid_argument);
  parts.sequence = 8;
  parts.moe.experts = 4;
  EXPECT_NO_THROW(Model(Split(2, parts), 32));
  parts.mtp = true;  // its layer reads the whole sequence
  EXPECT_THROW(Model(Split(2, parts), 32), std::invalid_argument);
  ModelConfig vocabulary;
  vocabulary.vocab_parallel = true;
  EXPECT_THROW(Model(vocabulary, 32), std::invalid_argument);  // nothing is split
  EXPECT_NO_THROW(Model(Split(2, vocabulary), 32));
  vocabulary.vocab = 33;
  EXPECT_THROW(Model(Split(2, vocabulary), 32), std::invalid_argument);
  vocabulary.vocab = 32;
  vocabulary.loss_chunks = 2;
  EXPECT_THROW(Model(Split(2, vocabulary), 32), std::invalid_argument);
}

}  // namespace
}  // namespace shardproof
