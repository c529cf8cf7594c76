// A model whose layers are split over tp computes the bits of the whole one.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "conformance/model/network.h"
#include "conformance/model/node_bench.h"

namespace shardproof {
namespace {

// The ranks of one group tp, node by node.
class Ranks {
 public:
  explicit Ranks(const ModelConfig& config) : in_parts_(config.sequence_parallel) {
    for (int32_t tp = 0; tp < config.tp; ++tp) {
      benches_.push_back(std::make_unique<NodeBench>(config, 32, ModelRank(0, 0, tp)));
      blocks_.push_back(benches_.back()->Start());
    }
  }

  void RunSample(int64_t step = 0, int64_t sample = 0) {
    step_ = step;
    sample_ = sample;
    const int32_t n = bench(0).program().n_nodes;
    for (int32_t i = 0; i < n; ++i) Run(i, SPF_FWD);
    for (int32_t i = n; i-- > 0;) Run(i, SPF_BWD);
    const spf_model& tables = bench(0).tables();
    for (int32_t id = 0; id < tables.n_params; ++id) {
      const uint32_t flags = tables.params[id].flags;
      // Experts, which here are on all ranks, have the tokens of this rank's part.
      const bool expert = in_parts_ && (flags & SPF_PARAM_EXPERT) != 0;
      if ((flags & SPF_PARAM_SEQUENCE_PARALLEL) != 0 || expert) Sum({SPF_IN_GRAD, SPF_ADD, 0, id});
    }
  }

  const NodeBench& bench(size_t rank) const { return *benches_[rank]; }
  Blocks& blocks(size_t rank) { return blocks_[rank]; }
  size_t size() const { return benches_.size(); }

 private:
  void Run(int32_t i, spf_phase phase) {
    const spf_node& node = bench(0).program().nodes[i];
    for (size_t rank = 0; rank < size(); ++rank)
      bench(rank).Run(blocks_[rank], bench(rank).program().nodes[i], phase, 1, SPF_F32, step_,
                      sample_);
    const spf_uses& uses = node.uses[phase];
    if (uses.n == 0) return;
    if (node.kind == SPF_NODE_ALL_REDUCE) Sum(uses.use[0]);
    if (node.kind != SPF_NODE_ALL_GATHER && node.kind != SPF_NODE_REDUCE_SCATTER) return;
    if ((node.kind == SPF_NODE_ALL_GATHER) == (phase == SPF_FWD)) {
      Gather(uses.use[0], uses.use[1]);
    } else {
      Sum(uses.use[0]);
      Scatter(uses.use[0], uses.use[1]);
    }
  }
  size_t CountOf(const spf_use& use) {
    return blocks_[0].Table(use.table)[static_cast<size_t>(use.id)].size() / 4;
  }
  void Gather(const spf_use& part, const spf_use& whole) {
    const size_t count = CountOf(part);
    for (Blocks& to : blocks_) {
      for (size_t rank = 0; rank < size(); ++rank)
        std::copy_n(blocks_[rank].Floats(part.table, part.id), count,
                    to.Floats(whole.table, whole.id) + rank * count);
    }
  }
  void Scatter(const spf_use& sum, const spf_use& part) {
    const size_t count = CountOf(part);
    for (size_t rank = 0; rank < size(); ++rank)
      std::copy_n(blocks_[rank].Floats(sum.table, sum.id) + rank * count, count,
                  blocks_[rank].Floats(part.table, part.id));
  }
  void Sum(const spf_use& use) {
    const size_t count = CountOf(use);
    for (size_t k = 0; k < count; ++k) {
      float sum = 0;
      for (size_t rank = size(); rank-- > 0;) sum += blocks_[rank].Floats(use.table, use.id)[k];
      for (Blocks& blocks : blocks_) blocks.Floats(use.table, use.id)[k] = sum;
    }
  }

  const bool in_parts_;
  int64_t step_ = 0, sample_ = 0;
  std::vector<std::unique_ptr<NodeBench>> benches_;
  std::vector<Blocks> blocks_;
};

// How many elements of gradients, and of losses, differ.
int64_t Differences(Ranks& ranks, const NodeBench& whole, Blocks& of_whole) {
  int64_t different = 0;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const spf_model& tables = ranks.bench(rank).tables();
    for (int32_t id = 0; id < tables.n_params; ++id) {
      const spf_param& param = tables.params[id];
      const float* mine = ranks.blocks(rank).Floats(SPF_IN_GRAD, id);
      const float* all = of_whole.Floats(SPF_IN_GRAD, FindParam(whole.tables(), param.name));
      for (int64_t i = 0; i < param.numel; ++i) {
        const int64_t at = ElementOfWhole(param, static_cast<int64_t>(ranks.size()),
                                          static_cast<int64_t>(rank), i);
        different += mine[i] == all[at] ? 0 : 1;
      }
    }
    for (int32_t id = 0; id < tables.n_values; ++id) {
      if ((tables.values[id].flags & SPF_VALUE_LOSS) == 0) continue;
      const int32_t same = FindValue(whole.tables(), tables.values[id].name);
      different +=
          *ranks.blocks(rank).Floats(SPF_IN_ACT, id) == *of_whole.Floats(SPF_IN_ACT, same) ? 0 : 1;
    }
  }
  return different;
}

void ExpectEqual(const ModelConfig& from, int32_t tp, const std::string& what) {
  const NodeBench whole(Split(1, from));
  Blocks blocks = whole.Start();
  whole.RunSample(blocks, 0, 0);
  Ranks ranks(Split(tp, from));
  ranks.RunSample();
  EXPECT_EQ(Differences(ranks, whole, blocks), 0) << what << ", tp " << tp;
}

TEST(TensorParallel, ShardsComputeTheBitsOfTheWhole) {
  ModelConfig plain;
  ExpectEqual(plain, 2, "plain");
  ModelConfig all;
  all.biases = all.root_param = all.reused = all.tied = true;
  all.sequence = 4;
  ExpectEqual(all, 2, "all");
  all.odd_sizes = true;
  all.tied = false;
  ExpectEqual(all, 2, "odd sizes");
  ExpectEqual(all, 4, "odd sizes");
  ModelConfig narrow;
  narrow.narrow = narrow.biases = true;
  narrow.heads = 4;
  ExpectEqual(narrow, 4, "narrow");
  ModelConfig routed;
  routed.moe.experts = 4;
  routed.moe.layers = "odd";
  routed.moe.shared = routed.mtp = true;
  ExpectEqual(routed, 2, "routed");
}

// With and without parts of the sequence, whole and split: four programs, one result.
void ExpectPartsEqual(ModelConfig config, int32_t tp, const std::string& what) {
  config.moe.parts = tp;
  const NodeBench whole(Split(1, config));
  Blocks blocks = whole.Start();
  whole.RunSample(blocks, 0, 0);
  config.sequence_parallel = true;
  for (const int32_t ranks : {1, tp}) {
    config.moe.parts = tp / ranks;
    Ranks parts(Split(ranks, config));
    parts.RunSample();
    EXPECT_EQ(Differences(parts, whole, blocks), 0) << what << ", tp " << ranks;
  }
}

TEST(TensorParallel, PartsOfTheSequenceComputeTheBitsOfTheWhole) {
  ModelConfig plain;
  ExpectPartsEqual(plain, 2, "plain");
  ModelConfig all;
  all.biases = all.root_param = all.reused = all.tied = true;
  all.sequence = 4;
  ExpectPartsEqual(all, 2, "all");
  all.odd_sizes = true;
  all.tied = false;
  ExpectPartsEqual(all, 4, "odd sizes");
  ModelConfig narrow;
  narrow.narrow = narrow.biases = narrow.root_param = true;
  narrow.heads = 4;
  ExpectPartsEqual(narrow, 4, "narrow");
  ModelConfig frozen;
  frozen.frozen = "embedding";
  frozen.biases = true;
  ExpectPartsEqual(frozen, 2, "frozen embedding");
  frozen.frozen = "norms";
  ExpectPartsEqual(frozen, 2, "frozen norms");
  frozen.frozen = "layer";
  ExpectPartsEqual(frozen, 2, "frozen layer");
}

TEST(TensorParallel, PartsAreRoutedAsTheWholeRoutesThem) {
  ModelConfig dropless;
  dropless.moe.experts = 4;
  dropless.moe.shared = dropless.biases = true;
  ExpectPartsEqual(dropless, 2, "dropless");
  ModelConfig drops;
  drops.heads = 4;
  drops.moe.experts = 4;
  drops.moe.layers = "odd";
  drops.moe.capacity_percent = 75;
  drops.moe.aux_loss = drops.moe.z_loss = true;
  ExpectPartsEqual(drops, 4, "drops");
  ModelConfig padded = drops;
  padded.moe.pad = padded.moe.shared = true;
  padded.moe.score = "sigmoid";
  ExpectPartsEqual(padded, 2, "padded");
  // The whole with one capacity for all is another model.
  const NodeBench whole(Split(1, drops));
  Blocks blocks = whole.Start();
  whole.RunSample(blocks, 0, 0);
  drops.sequence_parallel = true;
  Ranks parts(Split(2, drops));
  parts.RunSample();
  EXPECT_GT(Differences(parts, whole, blocks), 0);
}

// The vocabulary in one piece, and split, with and without parts of the sequence.
void ExpectVocabularyEqual(ModelConfig config, int32_t tp, const std::string& what) {
  config.vocab_multiple = 4;
  config.moe.parts = tp;
  const NodeBench whole(Split(1, config));
  Blocks blocks = whole.Start();
  whole.RunSample(blocks, 0, 0);
  config.vocab_parallel = true;
  for (const bool in_parts : {false, true}) {
    config.sequence_parallel = in_parts;
    for (const int32_t ranks : {1, tp}) {
      config.moe.parts = in_parts ? tp / ranks : tp;
      Ranks split(Split(ranks, config));
      split.RunSample();
      EXPECT_EQ(Differences(split, whole, blocks), 0)
          << what << ", tp " << ranks << (in_parts ? ", parts" : "");
    }
  }
}

TEST(TensorParallel, RangesOfTheVocabularyComputeTheBitsOfTheWhole) {
  ModelConfig plain;
  ExpectVocabularyEqual(plain, 2, "plain");
  ModelConfig all;
  all.biases = all.root_param = all.reused = all.tied = true;
  all.sequence = 4;
  ExpectVocabularyEqual(all, 2, "all");
  all.odd_sizes = true;
  all.tied = false;
  ExpectVocabularyEqual(all, 2, "odd sizes");
  ExpectVocabularyEqual(all, 4, "odd sizes");
  ModelConfig narrow;
  narrow.narrow = narrow.biases = narrow.root_param = true;
  narrow.heads = 4;
  ExpectVocabularyEqual(narrow, 4, "narrow");
  ModelConfig frozen;
  frozen.frozen = "embedding";
  frozen.biases = frozen.root_param = true;
  ExpectVocabularyEqual(frozen, 2, "frozen embedding");
  frozen.tied = true;
  ExpectVocabularyEqual(frozen, 2, "frozen head");
  ModelConfig routed;
  routed.moe.experts = 4;
  routed.moe.shared = true;
  ExpectVocabularyEqual(routed, 2, "routed");
}

TEST(TensorParallel, ALabelThatIsNoTokenIsOneForEachRange) {
  ModelConfig config = Split(2);
  config.vocab_parallel = config.nan_loss = true;
  Ranks ranks(config);
  const NodeBench whole([] {
    ModelConfig in_one_piece = Split(1);
    in_one_piece.nan_loss = true;
    return in_one_piece;
  }());
  Blocks blocks = whole.Start();
  whole.RunSample(blocks, 1, 1);
  ranks.RunSample(1, 1);
  int64_t nan = 0, nan_of_whole = 0;
  for (size_t rank = 0; rank < 2; ++rank) {
    const spf_model& tables = ranks.bench(rank).tables();
    for (int32_t id = 0; id < tables.n_params; ++id) {
      const spf_param& param = tables.params[id];
      const float* all = blocks.Floats(SPF_IN_GRAD, FindParam(whole.tables(), param.name));
      for (int64_t i = 0; i < param.numel; ++i) {
        const float mine = ranks.blocks(rank).Floats(SPF_IN_GRAD, id)[i];
        const float theirs = all[ElementOfWhole(param, 2, static_cast<int64_t>(rank), i)];
        EXPECT_EQ(std::isnan(mine), std::isnan(theirs)) << param.name;
        nan += std::isnan(mine);
        nan_of_whole += std::isnan(theirs);
      }
    }
  }
  EXPECT_EQ(nan, nan_of_whole);
  EXPECT_GT(nan, 0);
}

TEST(TensorParallel, ValuesOfRoutedPartsHaveTheRowsOfThePart) {
  ModelConfig config;
  config.sequence_parallel = true;
  config.moe.experts = 4;
  config.moe.shared = true;
  const NodeBench bench(Split(2, config), 32, ModelRank(0, 0, 1));
  const spf_model& tables = bench.tables();
  const auto rows = [&](const std::string& name) {
    return tables.values[FindValue(tables, "layers.0.moe." + name)].max_rows;
  };
  for (const char* name : {"probs", "index", "shared.fc1", "shared.fc2", "unpermute"})
    EXPECT_EQ(rows(name), 4) << name;
  EXPECT_EQ(rows("permuted"), 8);  // two choices of each token
  const auto flags = [&](const std::string& name) {
    return tables.params[FindParam(tables, "layers.0.moe." + name + ".weight")].flags;
  };
  EXPECT_EQ(flags("router"), uint32_t{SPF_PARAM_SEQUENCE_PARALLEL});
  EXPECT_EQ(flags("shared.fc1"), uint32_t{SPF_PARAM_SEQUENCE_PARALLEL});
  EXPECT_EQ(flags("experts.0.fc1"), uint32_t{SPF_PARAM_EXPERT});
}

TEST(TensorParallel, ASumThatIsLeftOutShows) {
  const NodeBench whole(Split(1));
  Blocks blocks = whole.Start();
  whole.RunSample(blocks, 0, 0);
  Ranks ranks(Split(2));
  ranks.bench(0).RunSample(ranks.blocks(0), 0, 0);  // nothing leaves a rank here
  ranks.bench(1).RunSample(ranks.blocks(1), 0, 0);
  EXPECT_GT(Differences(ranks, whole, blocks), 1000);
}

}  // namespace
}  // namespace shardproof
