// Ranks of cp that have parts of a sequence compute the bits of a model that has all of it, also
// where layers are split over tp.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include "conformance/model/network.h"
#include "conformance/model/node_bench.h"

namespace shardproof {
namespace {

constexpr int64_t kTokens = 32;  // of a step

ModelConfig Over(ModelConfig config, int32_t cp, int32_t tp = 1) {
  config.context_parallel = true;
  config.cp = cp;
  config.tensor_parallel |= tp > 1;
  config.tp = tp;
  return config;
}

// The ranks of a grid of tp and cp, node by node. Sample r of the step is the part of cp rank r.
class Ranks {
 public:
  explicit Ranks(const ModelConfig& config) : tp_(config.tp), cp_(config.cp) {
    for (int32_t rank = 0; rank < tp_ * cp_; ++rank) {
      const ModelRank place(0, 0, rank % tp_, rank / tp_);
      benches_.push_back(std::make_unique<NodeBench>(config, kTokens, place));
      blocks_.push_back(benches_.back()->Start());
    }
  }

  // leave_out: kind of a node whose backward stays on its rank.
  void RunSample(int32_t leave_out = -1) {
    const int32_t n = bench(0).program().n_nodes;
    for (int32_t i = 0; i < n; ++i) Run(i, SPF_FWD, leave_out);
    for (int32_t i = n; i-- > 0;) Run(i, SPF_BWD, leave_out);
    const spf_model& tables = bench(0).tables();
    for (int32_t id = 0; id < tables.n_params; ++id) {
      const bool parts = (tables.params[id].flags & SPF_PARAM_SEQUENCE_PARALLEL) != 0;
      const spf_use grad{SPF_IN_GRAD, SPF_ADD, 0, id};
      for (int32_t cp = 0; parts && cp < cp_; ++cp) Sum(grad, OverTp(cp));
      for (int32_t tp = 0; tp < tp_; ++tp) Sum(grad, OverCp(tp));
    }
  }

  const NodeBench& bench(int32_t rank) const { return *benches_[size_t(rank)]; }
  Blocks& blocks(int32_t rank) { return blocks_[size_t(rank)]; }
  int32_t tp() const { return tp_; }
  int32_t cp() const { return cp_; }

 private:
  using Group = std::vector<int32_t>;

  Group OverTp(int32_t cp) const {
    Group group;
    for (int32_t tp = 0; tp < tp_; ++tp) group.push_back(cp * tp_ + tp);
    return group;
  }
  Group OverCp(int32_t tp) const {
    Group group;
    for (int32_t cp = 0; cp < cp_; ++cp) group.push_back(cp * tp_ + tp);
    return group;
  }

  void Run(int32_t i, spf_phase phase, int32_t leave_out) {
    const spf_node& node = bench(0).program().nodes[i];
    const bool alone = phase == SPF_BWD && node.kind == leave_out;
    for (int32_t rank = 0; rank < tp_ * cp_; ++rank)
      bench(rank).Run(blocks(rank), bench(rank).program().nodes[i], phase, 1, SPF_F32, 0,
                      rank / tp_);
    if (node.uses[phase].n == 0 || alone) return;
    const bool over_cp = node.kind == SPF_NODE_ALL_GATHER_CP;
    for (int32_t g = 0; g < (over_cp ? tp_ : cp_); ++g)
      Meet(node, phase, over_cp ? OverCp(g) : OverTp(g));
  }
  void Meet(const spf_node& node, spf_phase phase, const Group& group) {
    const spf_uses& uses = node.uses[phase];
    if (node.kind == SPF_NODE_ALL_REDUCE) return Sum(uses.use[0], group);
    const bool gather = node.kind == SPF_NODE_ALL_GATHER || node.kind == SPF_NODE_ALL_GATHER_CP;
    if (!gather && node.kind != SPF_NODE_REDUCE_SCATTER) return;
    if (gather == (phase == SPF_FWD)) return Gather(uses.use[0], uses.use[1], group);
    Sum(uses.use[0], group);
    Scatter(uses.use[0], uses.use[1], group);
  }
  size_t CountOf(const spf_use& use) {
    return blocks(0).Table(use.table)[size_t(use.id)].size() / 4;
  }
  float* At(int32_t rank, const spf_use& use) { return blocks(rank).Floats(use.table, use.id); }

  void Gather(const spf_use& part, const spf_use& whole, const Group& group) {
    const size_t count = CountOf(part);
    for (const int32_t to : group) {
      for (size_t r = 0; r < group.size(); ++r)
        std::copy_n(At(group[r], part), count, At(to, whole) + r * count);
    }
  }
  void Scatter(const spf_use& sum, const spf_use& part, const Group& group) {
    const size_t count = CountOf(part);
    for (size_t r = 0; r < group.size(); ++r)
      std::copy_n(At(group[r], sum) + r * count, count, At(group[r], part));
  }
  void Sum(const spf_use& use, const Group& group) {
    for (size_t k = 0; k < CountOf(use); ++k) {
      float sum = 0;
      for (auto rank = group.rbegin(); rank != group.rend(); ++rank) sum += At(*rank, use)[k];
      for (const int32_t rank : group) At(rank, use)[k] = sum;
    }
  }

  int32_t tp_, cp_;
  std::vector<std::unique_ptr<NodeBench>> benches_;
  std::vector<Blocks> blocks_;
};

// A model without parts, on the sequence whose parts the ranks have.
struct Whole {
  Whole(ModelConfig config, int32_t cp)
      : bench(WithAll(config, cp), kTokens), blocks(bench.Start()) {}

  static ModelConfig WithAll(ModelConfig config, int32_t cp) {
    config.sequence *= cp;
    config.context_parallel = config.sequence_parallel = false;
    config.cp = config.tp = 1;
    return config;
  }

  void RunSample(Ranks& parts) {
    const spf_program& program = bench.program();
    for (int32_t i = 0; i < program.n_nodes; ++i) {
      bench.Run(blocks, program.nodes[i], SPF_FWD);
      if (program.nodes[i].kind == SPF_NODE_INPUT) TakeTokens(parts);
    }
    for (int32_t i = program.n_nodes; i-- > 0;) bench.Run(blocks, program.nodes[i], SPF_BWD);
  }

  void TakeTokens(Ranks& parts) {
    for (const char* name : {"tokens", "labels"}) {
      Block& all = blocks.act[size_t(FindValue(bench.tables(), name))];
      for (int32_t cp = 0; cp < parts.cp(); ++cp) {
        const int32_t rank = cp * parts.tp();
        const Block& part =
            parts.blocks(rank).act[size_t(FindValue(parts.bench(rank).tables(), name))];
        std::copy(part.begin(), part.end(), all.begin() + std::ptrdiff_t(part.size()) * cp);
      }
    }
  }

  NodeBench bench;
  Blocks blocks;
};

// How many elements of gradients differ, and whether the parts' losses do not add up to the loss.
int64_t Differences(Ranks& ranks, Whole& whole) {
  int64_t different = 0;
  float losses = 0;
  for (int32_t rank = 0; rank < ranks.tp() * ranks.cp(); ++rank) {
    const spf_model& tables = ranks.bench(rank).tables();
    for (int32_t id = 0; id < tables.n_params; ++id) {
      const spf_param& param = tables.params[id];
      const float* mine = ranks.blocks(rank).Floats(SPF_IN_GRAD, id);
      const float* all =
          whole.blocks.Floats(SPF_IN_GRAD, FindParam(whole.bench.tables(), param.name));
      for (int64_t i = 0; i < param.numel; ++i)
        different +=
            mine[i] == all[ElementOfWhole(param, ranks.tp(), rank % ranks.tp(), i)] ? 0 : 1;
    }
    if (rank % ranks.tp() == 0)
      losses += *ranks.blocks(rank).Floats(SPF_IN_ACT, FindValue(tables, "loss"));
  }
  const float loss = *whole.blocks.Floats(SPF_IN_ACT, FindValue(whole.bench.tables(), "loss"));
  return different + (losses == loss ? 0 : 1);
}

void ExpectEqual(const ModelConfig& from, int32_t cp, int32_t tp, const std::string& what) {
  Ranks ranks(Over(from, cp, tp));
  ranks.RunSample();
  Whole whole(ranks.bench(0).model().config(), cp);
  whole.RunSample(ranks);
  EXPECT_EQ(Differences(ranks, whole), 0) << what << ", cp " << cp << ", tp " << tp;
}

TEST(ContextParallel, PartsOfASequenceComputeTheBitsOfTheWhole) {
  ModelConfig plain;
  for (const int32_t cp : {1, 2, 3, 4}) ExpectEqual(plain, cp, 1, "plain");
  ModelConfig all;
  all.biases = all.root_param = all.reused = all.tied = true;
  all.sequence = 4;
  ExpectEqual(all, 2, 1, "all");
  all.odd_sizes = true;
  all.tied = false;
  ExpectEqual(all, 3, 1, "odd sizes");
  ModelConfig narrow;
  narrow.narrow = narrow.biases = narrow.root_param = true;
  ExpectEqual(narrow, 2, 1, "narrow");
  ModelConfig one_token;
  one_token.sequence = 1;
  ExpectEqual(one_token, 4, 1, "one token");
  ModelConfig frozen;
  frozen.biases = true;
  for (const char* what : {"embedding", "norms", "layer", "last"}) {
    frozen.frozen = what;
    ExpectEqual(frozen, 2, 1, std::string("frozen ") + what);
  }
}

TEST(ContextParallel, AlsoWhereLayersAreSplitOverTp) {
  ModelConfig config;
  config.biases = config.root_param = true;
  config.sequence = 4;
  ExpectEqual(config, 2, 2, "split");
  config.sequence_parallel = true;
  ExpectEqual(config, 2, 2, "parts of parts");
  config.odd_sizes = true;
  ExpectEqual(config, 3, 4, "odd parts of parts");
}

TEST(ContextParallel, ASumOfGradientsThatIsLeftOutShows) {
  Ranks ranks(Over({}, 2));
  ranks.RunSample(SPF_NODE_ALL_GATHER_CP);
  Whole whole({}, 2);
  whole.RunSample(ranks);
  EXPECT_GT(Differences(ranks, whole), 1000);
}

TEST(ContextParallel, WhatCannotBePartIsRefused) {
  ModelConfig whole;
  whole.cp = 2;
  EXPECT_THROW(Model(whole, kTokens), std::invalid_argument);  // samples are whole
  ModelConfig experts;
  experts.experts = true;
  EXPECT_THROW(Model(Over(experts, 2), kTokens), std::invalid_argument);
  ModelConfig routed;
  routed.moe.experts = 4;
  EXPECT_NO_THROW(Model(Over(routed, 2), kTokens));
  routed.mtp = true;  // the token after the next is in another part
  EXPECT_THROW(Model(Over(routed, 2), kTokens), std::invalid_argument);
  ModelConfig absent;
  absent.unused = "rank";
  EXPECT_THROW(Model(Over(absent, 2), kTokens), std::invalid_argument);
}

}  // namespace
}  // namespace shardproof
