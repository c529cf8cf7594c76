// Does each phase of each node touch exactly what it declares?
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "conformance/model/node_bench.h"

namespace shardproof {
namespace {

enum class Kind { kUndeclared, kRead, kWrite, kAdd };

Kind Declared(const spf_uses& uses, int32_t table, int32_t id) {
  for (int32_t i = 0; i < uses.n; ++i) {
    if (uses.use[i].table != table || uses.use[i].id != id) continue;
    return uses.use[i].access == SPF_READ    ? Kind::kRead
           : uses.use[i].access == SPF_WRITE ? Kind::kWrite
                                             : Kind::kAdd;
  }
  return Kind::kUndeclared;
}

template <typename Visit>
void ForEachBlock(Blocks& blocks, Visit visit) {
  for (int32_t table = SPF_IN_PARAM; table <= SPF_IN_DACT; ++table) {
    for (size_t id = 0; id < blocks.Table(table).size(); ++id)
      visit(table, static_cast<int32_t>(id));
  }
}

// With everything that the phase does not read filled with a byte, it computes the same and leaves
// the rest alone. 0xFF makes NaNs: a read shows. 0x11 makes small numbers: a write shows, also by
// adding.
void CheckHidden(const NodeBench& bench, const Blocks& state, Blocks& plain, const spf_node& node,
                 spf_phase phase, int fill) {
  const spf_uses& uses = node.uses[phase];
  Blocks hidden = state;
  ForEachBlock(hidden, [&](int32_t table, int32_t id) {
    const Kind kind = Declared(uses, table, id);
    Block& block = hidden.Table(table)[static_cast<size_t>(id)];
    if (kind == Kind::kUndeclared || kind == Kind::kWrite)
      std::memset(block.data(), fill, block.size());
  });
  Blocks before = hidden;
  bench.Run(hidden, node, phase);
  ForEachBlock(hidden, [&](int32_t table, int32_t id) {
    const auto i = static_cast<size_t>(id);
    const Kind kind = Declared(uses, table, id);
    Blocks& expected = kind == Kind::kWrite || kind == Kind::kAdd ? plain : before;
    const bool value = table == SPF_IN_ACT || table == SPF_IN_DACT;
    Block &found = hidden.Table(table)[i], wanted = expected.Table(table)[i];
    const size_t live = value ? bench.LiveBytes(plain, id) : found.size();
    EXPECT_EQ(std::memcmp(found.data(), wanted.data(), live), 0)
        << "table " << table << " id " << id;
    EXPECT_TRUE(std::equal(found.begin() + static_cast<ptrdiff_t>(live), found.end(),
                           before.Table(table)[i].begin() + static_cast<ptrdiff_t>(live)))
        << "beyond its rows: table " << table << " id " << id;
  });
}

// Whether the expert that parameter use i of a grouped node belongs to has rows (weights come
// first, then biases, each by expert).
bool HasRows(const NodeBench& bench, const Blocks& state, const spf_node& node, spf_phase phase,
             int32_t use) {
  if (std::string(bench.tables().modules[node.module].type) != "Experts") return true;
  const spf_uses& uses = node.uses[phase];
  for (int32_t i = 0; i < uses.n; ++i) {
    const int32_t id = uses.use[i].id;
    if (uses.use[i].table != SPF_IN_ACT || bench.tables().values[id].dtype != SPF_I64) continue;
    const Block& block = state.act[static_cast<size_t>(id)];
    std::vector<int64_t> counts(block.size() / sizeof(int64_t));
    std::memcpy(counts.data(), block.data(), block.size());
    return counts[static_cast<size_t>(use) % counts.size()] > 0;
  }
  return true;  // padded
}

// Poison in something that is declared as read changes what the phase writes.
void CheckRead(const NodeBench& bench, const Blocks& state, Blocks& plain, const spf_node& node,
               spf_phase phase, const spf_use& use) {
  const spf_uses& uses = node.uses[phase];
  Blocks poisoned = state;
  Block& block = poisoned.Table(use.table)[static_cast<size_t>(use.id)];
  std::memset(block.data(), 0xFF, block.size());
  bench.Run(poisoned, node, phase);
  bool shows = false;
  for (int32_t i = 0; i < uses.n; ++i) {
    if ((uses.use[i].access & SPF_WRITE) == 0) continue;
    const auto id = static_cast<size_t>(uses.use[i].id);
    shows |= poisoned.Table(uses.use[i].table)[id] != plain.Table(uses.use[i].table)[id];
  }
  EXPECT_TRUE(shows) << "declared but not read: table " << int(use.table) << " id " << use.id;
}

void CheckTouches(const NodeBench& bench, const Blocks& state, const spf_node& node,
                  spf_phase phase) {
  SCOPED_TRACE(std::string(node.name) + " phase " + std::to_string(phase));
  Blocks plain = state;
  bench.Run(plain, node, phase);
  CheckHidden(bench, state, plain, node, phase, 0xFF);
  CheckHidden(bench, state, plain, node, phase, 0x11);
  const spf_uses& uses = node.uses[phase];
  for (int32_t i = 0; i < uses.n; ++i) {
    // A weight is read if there is a row to multiply it with.
    if (uses.use[i].table == SPF_IN_PARAM && !HasRows(bench, state, node, phase, i)) continue;
    if (uses.use[i].access != SPF_WRITE) CheckRead(bench, state, plain, node, phase, uses.use[i]);
  }
}

void CheckPrograms(const NodeBench& bench) {
  for (int64_t step = 0; step < 2; ++step) {
    Blocks state = bench.Start();
    bench.RunSample(state, step, step);
    const spf_program& program = bench.program(step, step);
    for (int32_t i = 0; i < program.n_nodes; ++i) {
      for (spf_phase phase : {SPF_FWD, SPF_BWD, SPF_DGRAD, SPF_WGRAD}) {
        CheckTouches(bench, state, program.nodes[i], phase);
      }
    }
  }
}

class NodeTouchTest : public testing::TestWithParam<size_t> {
 protected:
  ModelConfig Config() const { return VariedConfigs()[GetParam()]; }
};

TEST_P(NodeTouchTest, EveryPhaseTouchesExactlyWhatItDeclares) {
  CheckPrograms(NodeBench(Config()));
}

TEST(SequenceParallel, EveryPhaseTouchesExactlyWhatItDeclares) {
  ModelConfig config = VariedConfigs().back();
  ASSERT_TRUE(config.sequence_parallel);
  config.tp = 2;
  CheckPrograms(NodeBench(config, 32, ModelRank(0, 0, 1)));
}

TEST(ContextParallel, EveryPhaseTouchesExactlyWhatItDeclares) {
  ModelConfig config;
  config.context_parallel = config.root_param = config.biases = true;
  config.sequence = 4;
  config.cp = 2;
  CheckPrograms(NodeBench(config, 32, ModelRank(0, 0, 0, 1)));
  config.tensor_parallel = config.sequence_parallel = true;
  config.tp = 2;
  CheckPrograms(NodeBench(config, 32, ModelRank(0, 0, 1, 1)));
}

INSTANTIATE_TEST_SUITE_P(Configs, NodeTouchTest, testing::Range<size_t>(0, VariedConfigs().size()));

}  // namespace
}  // namespace shardproof
