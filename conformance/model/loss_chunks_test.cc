// A loss in chunks computes the bits of the loss in one piece: gradients of all parameters, and the
// loss.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "conformance/model/node_bench.h"

namespace shardproof {
namespace {

// Each chunk forward and backward before the next, as engines run it; backward of the rest once.
void RunChunkByChunk(const NodeBench& bench, Blocks& blocks, int32_t chunks) {
  const spf_program& p = bench.program();
  const int32_t first = p.n_nodes - 2 * chunks;
  for (int32_t i = 0; i < first; ++i) bench.Run(blocks, p.nodes[i], SPF_FWD);
  for (int32_t i = first; i < p.n_nodes; i += 2) {
    bench.Run(blocks, p.nodes[i], SPF_FWD);
    bench.Run(blocks, p.nodes[i + 1], SPF_FWD);
    bench.Run(blocks, p.nodes[i + 1], SPF_BWD);
    bench.Run(blocks, p.nodes[i], SPF_BWD);
  }
  for (int32_t i = first; i-- > 0;) bench.Run(blocks, p.nodes[i], SPF_BWD);
}

const float* LossOf(const NodeBench& bench, Blocks& blocks) {
  for (int32_t id = 0; id < bench.tables().n_values; ++id) {
    if ((bench.tables().values[id].flags & SPF_VALUE_LOSS) != 0)
      return blocks.Floats(SPF_IN_ACT, id);
  }
  throw std::logic_error("no loss");
}

void ExpectEqual(ModelConfig config, int32_t chunks, const std::string& what) {
  const NodeBench whole(config);
  Blocks of_whole = whole.Start();
  whole.RunSample(of_whole, 0, 0);
  config.loss_chunks = chunks;
  const NodeBench parts(config);
  Blocks by_chunk = parts.Start(), in_reverse = parts.Start();
  RunChunkByChunk(parts, by_chunk, chunks);
  parts.RunSample(in_reverse, 0, 0, true);  // all forward, then all backward, in halves
  EXPECT_EQ(by_chunk.grad, of_whole.grad) << what << ", " << chunks << " chunks";
  EXPECT_EQ(in_reverse.grad, of_whole.grad) << what << ", " << chunks << " chunks";
  EXPECT_EQ(*LossOf(parts, by_chunk), *LossOf(whole, of_whole)) << what;
}

TEST(LossChunks, ComputeTheBitsOfTheWhole) {
  ModelConfig plain;
  for (const int32_t chunks : {2, 4, 8}) ExpectEqual(plain, chunks, "plain");
  ModelConfig all;
  all.biases = all.root_param = all.reused = all.tied = true;
  all.sequence = 4;
  ExpectEqual(all, 4, "all");
  all.odd_sizes = true;
  ExpectEqual(all, 2, "odd sizes");
  ModelConfig narrow;
  narrow.narrow = narrow.biases = true;
  ExpectEqual(narrow, 4, "narrow");
  ModelConfig bf16;
  bf16.bf16_params = true;
  bf16.sequence = 6;
  ExpectEqual(bf16, 3, "bf16");
  ModelConfig frozen;
  frozen.tied = true;
  frozen.frozen = "embedding";
  ExpectEqual(frozen, 2, "frozen head");
  ModelConfig routed;
  routed.moe.experts = 4;
  ExpectEqual(routed, 2, "routed");
  ModelConfig parts;
  parts.tensor_parallel = parts.sequence_parallel = true;
  ExpectEqual(parts, 2, "parts of the sequence");
}

// What the tables say.
TEST(LossChunks, LogitsAreThoseOfOneChunk) {
  ModelConfig config;
  config.loss_chunks = 4;
  const NodeBench bench(config);
  const spf_program& program = bench.program();
  int32_t losses = 0;
  for (int32_t i = program.n_nodes - 8; i < program.n_nodes; ++i) {
    const spf_node& node = program.nodes[i];
    const bool loss = i % 2 == (program.n_nodes - 1) % 2;
    EXPECT_EQ(std::string(node.name).substr(0, 5), loss ? "loss." : "head.");
    for (int32_t u = 0; u < node.uses[SPF_FWD].n; ++u) {
      const spf_use& use = node.uses[SPF_FWD].use[u];
      if (use.table != SPF_IN_ACT || use.access == SPF_READ) continue;
      const spf_value& value = bench.tables().values[use.id];
      EXPECT_EQ(value.max_rows, loss ? 1 : 2) << value.name;
      EXPECT_EQ(use.access, loss ? SPF_ADD : SPF_WRITE) << value.name;
      losses += (value.flags & SPF_VALUE_LOSS) != 0;
    }
  }
  EXPECT_EQ(losses, 4);
}

TEST(LossChunks, AChunkThatIsLeftOutShows) {
  ModelConfig config;
  config.loss_chunks = 2;
  const NodeBench bench(config);
  Blocks all = bench.Start(), some = bench.Start();
  RunChunkByChunk(bench, all, 2);
  const spf_program& p = bench.program();
  const int32_t first = p.n_nodes - 4;
  for (int32_t i = 0; i < p.n_nodes; ++i) bench.Run(some, p.nodes[i], SPF_FWD);
  for (int32_t i = p.n_nodes; i-- > 0;) {
    if (i != first) bench.Run(some, p.nodes[i], SPF_BWD);
  }
  EXPECT_NE(all.grad, some.grad);
}

TEST(LossChunks, WhatCannotBeCutIsRefused) {
  ModelConfig config;
  config.loss_chunks = 3;
  EXPECT_THROW(Model(config, 32), std::invalid_argument);
  config.loss_chunks = 0;
  EXPECT_THROW(Model(config, 32), std::invalid_argument);
  config.loss_chunks = 2;
  config.moe.experts = 4;
  config.mtp = true;
  EXPECT_THROW(Model(config, 32), std::invalid_argument);
}

}  // namespace
}  // namespace shardproof
