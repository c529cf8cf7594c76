// Do the nodes of routed experts give the host's bits on a device: every routing, on every number
// of ranks, with what other ranks really sent, and with counts and indices that are stale?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "conformance/model/cuda/device_bench.h"
#include "conformance/model/ep_emulation.h"
#include "conformance/model/network.h"

namespace shardproof {
namespace {

constexpr spf_phase kPhases[] = {SPF_FWD, SPF_BWD, SPF_DGRAD, SPF_WGRAD};

Block Copied(const void* from, size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(from);
  return Block(begin, begin + bytes);
}

// Computes routed nodes on the device too, and expects the host's bits wherever the call can reach.
class ComparingBench : public DeviceBench {
 public:
  ComparingBench(const ModelConfig& config, int64_t max_tokens, ModelRank rank, int64_t* compared)
      : DeviceBench(config, max_tokens, rank), compared_(compared) {}

 protected:
  void Compute(const NodeArgs& args) const override {
    const spf_node& node = model().Node(args.node, rank());
    if (!IsRouted(*this, node)) return NodeBench::Compute(args);
    const Blocks before = Copy(args);
    DeviceBench::Compute(args);
    Blocks found = Copy(args);
    PutBack(before, args);
    NodeBench::Compute(args);
    Blocks wanted = Copy(args);
    EXPECT_EQ(FirstDifference(tables(), args.grad_dtype, found, wanted), "")
        << node.name << " phase " << args.phase << " ep rank " << rank().ep;
    ++*compared_;
  }

 private:
  Blocks Copy(const NodeArgs& args) const {
    Blocks blocks;
    blocks.grad.reserve(static_cast<size_t>(tables().n_params));
    blocks.act.reserve(static_cast<size_t>(tables().n_values));
    blocks.dact.reserve(static_cast<size_t>(tables().n_values));
    for (int32_t id = 0; id < tables().n_params; ++id)
      blocks.grad.push_back(
          Copied(args.grad[id], static_cast<size_t>(tables().params[id].numel) * sizeof(float)));
    for (int32_t id = 0; id < tables().n_values; ++id) {
      const spf_value& value = tables().values[id];
      const size_t element = value.dtype == SPF_I64 ? sizeof(int64_t) : sizeof(float);
      const size_t bytes = static_cast<size_t>(value.max_rows * value.row_elems) * element;
      blocks.act.push_back(Copied(args.act[id], bytes));
      blocks.dact.push_back(Copied(args.dact[id], bytes));
    }
    return blocks;
  }
  static void PutBack(const Blocks& blocks, const NodeArgs& args) {
    for (size_t id = 0; id < blocks.grad.size(); ++id)
      std::memcpy(args.grad[id], blocks.grad[id].data(), blocks.grad[id].size());
    for (size_t id = 0; id < blocks.act.size(); ++id) {
      std::memcpy(args.act[id], blocks.act[id].data(), blocks.act[id].size());
      std::memcpy(args.dact[id], blocks.dact[id].data(), blocks.dact[id].size());
    }
  }

  int64_t* compared_;
};

// `ep` ranks together, two steps; returns how many calls of routed nodes were compared.
int64_t CompareTogether(ModelConfig config, int32_t ep, const EpEmulation::Options& options) {
  int64_t compared = 0;
  config.ep = ep;
  EpEmulation emulation(config, 16 * config.sequence,
                        [&](const ModelConfig& c, int64_t max_tokens, ModelRank rank) {
                          return std::make_unique<ComparingBench>(c, max_tokens, rank, &compared);
                        });
  std::vector<int64_t> samples;
  for (int64_t sample = 0; sample < ep; ++sample) samples.push_back(sample);
  for (int64_t step = 0; step < 2; ++step) emulation.Run(step, samples, options);
  return compared;
}

class DeviceRoutingTest : public testing::TestWithParam<int32_t> {};

TEST_P(DeviceRoutingTest, RanksTogetherGetTheHostsBits) {
  for (const NamedConfig& named : RoutedConfigs(GetParam())) {
    for (int32_t ep : {1, 2, GetParam()}) {
      SCOPED_TRACE(named.name + ", ep " + std::to_string(ep));
      EXPECT_GE(CompareTogether(named.config, ep, {}), 2 * 11 * ep);
      if (HasFailure()) return;
    }
  }
}

// A gradient in bf16 rounds after each source rank's rows.
TEST_P(DeviceRoutingTest, WithALossScaleAndGradientsInBf16) {
  for (const NamedConfig& named : RoutedConfigs(GetParam())) {
    SCOPED_TRACE(named.name);
    CompareTogether(named.config, GetParam() / 2, {0.125, true, SPF_BF16});
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Experts, DeviceRoutingTest, testing::Values(4, 8));

// --- stale and poisoned memory

ModelConfig TwoRanks() {
  ModelConfig config;
  config.moe.experts = 4;
  config.ep = 2;
  config.biases = true;
  return config;
}

// A sample on the host, and every phase of the nodes of one kind on both sides, from what `change`
// makes of it.
class StaleTest : public testing::Test {
 protected:
  explicit StaleTest(const ModelConfig& config = TwoRanks()) : host_(config), device_(config) {
    state_ = host_.Start();
    host_.RunSample(state_, 0, 0);
  }
  const NodeSpec& Spec(const spf_node& node) const { return host_.model().Graph({}).spec(node.id); }

  // Returns whether a NaN was written on the host.
  bool ExpectSame(const Blocks& state, const spf_node& node, spf_phase phase) const {
    SCOPED_TRACE(std::string(node.name) + " phase " + std::to_string(phase));
    Blocks wanted = state, found = state;
    host_.Run(wanted, node, phase);
    device_.Run(found, node, phase);
    EXPECT_EQ(FirstDifference(host_.tables(), SPF_F32, found, wanted), "");
    bool nan = false;
    const spf_uses& uses = node.uses[phase];
    for (int32_t u = 0; u < uses.n; ++u) {
      if (uses.use[u].access == SPF_READ || uses.use[u].table == SPF_IN_PARAM) continue;
      nan |= std::isnan(wanted.Floats(uses.use[u].table, uses.use[u].id)[0]);
    }
    return nan;
  }
  template <class Visit>
  void ForEachNode(Op op, Visit visit) const {
    int32_t visited = 0;
    for (int32_t i = 0; i < host_.program().n_nodes; ++i) {
      const spf_node& node = host_.program().nodes[i];
      if (Spec(node).op != op) continue;
      for (spf_phase phase : kPhases) visit(node, phase);
      ++visited;
    }
    EXPECT_GE(visited, 2);
  }

  NodeBench host_;
  DeviceBench device_;
  Blocks state_;
};

TEST_F(StaleTest, CountsThatDoNotMakeTheRowsGiveNaN) {
  const int64_t huge = std::numeric_limits<int64_t>::max(),
                least = std::numeric_limits<int64_t>::min();
  const std::vector<std::vector<int64_t>> stale{{-1, -1, -1, -1},
                                                {0x1111111111111111, 1, 1, 1},
                                                {huge, huge, huge, huge},
                                                {least, least, 16, least},
                                                {17, -1, 0, 0},
                                                {-1, 17, 0, 0},
                                                {8, -4, 12, 0},
                                                {0, 16, 1, -1},
                                                {0, 0, 0, 0},
                                                {0, 0, 0, 15},
                                                {4, 4, 4, 5},
                                                {16, 0, 0, 1},
                                                {8, 8, huge, huge},
                                                {huge, huge, 2, 16},
                                                {0, huge, -huge, 16},
                                                {1, 1, 1, int64_t{1} << 32}};
  ForEachNode(Op::kGroupedLinear, [&](const spf_node& node, spf_phase phase) {
    const auto counts = static_cast<size_t>(Spec(node).in[1]);
    for (const std::vector<int64_t>& each : stale) {
      Blocks state = state_;
      ASSERT_EQ(state.act[counts].size(), each.size() * sizeof(int64_t));
      std::memcpy(state.act[counts].data(), each.data(), state.act[counts].size());
      EXPECT_TRUE(ExpectSame(state, node, phase)) << each[0];
    }
  });
}

TEST_F(StaleTest, CountsThatMakeTheRowsAreTakenAsTheyAre) {
  ForEachNode(Op::kGroupedLinear, [&](const spf_node& node, spf_phase phase) {
    const auto counts = static_cast<size_t>(Spec(node).in[1]);
    for (const std::vector<int64_t>& each : std::vector<std::vector<int64_t>>{
             {16, 0, 0, 0}, {0, 0, 0, 16}, {0, 8, 8, 0}, {5, 0, 0, 11}, {1, 2, 3, 10}}) {
      Blocks state = state_;
      std::memcpy(state.act[counts].data(), each.data(), state.act[counts].size());
      EXPECT_FALSE(ExpectSame(state, node, phase)) << each[0];
    }
  });
}

TEST_F(StaleTest, AnIndexOfNoExpertIsDropped) {
  const std::vector<std::vector<int32_t>> stale{
      {0x11111111}, {-7}, {4}, {3}, {-1, 0, 3, 4, 0x7FFFFFFF, 2, 2, -2147483647}};
  for (Op op : {Op::kRouter, Op::kPermute, Op::kUnpermute}) {
    ForEachNode(op, [&](const spf_node& node, spf_phase phase) {
      const NodeSpec& spec = Spec(node);
      const int32_t value = op == Op::kRouter    ? spec.out[1]
                            : op == Op::kPermute ? spec.in[2]
                                                 : spec.in[1];
      for (const std::vector<int32_t>& each : stale) {
        Blocks state = state_;
        Block& index = state.act[static_cast<size_t>(value)];
        for (size_t i = 0; i < index.size() / sizeof(int32_t); ++i)
          std::memcpy(&index[i * sizeof(int32_t)], &each[i % each.size()], sizeof(int32_t));
        EXPECT_FALSE(ExpectSame(state, node, phase)) << each[0];
      }
    });
  }
}

// Splits only add up: sums of poison wrap, as on the host.
TEST_F(StaleTest, SplitsOfPoisonWrap) {
  ForEachNode(Op::kSplits, [&](const spf_node& node, spf_phase phase) {
    const auto counts = static_cast<size_t>(Spec(node).in[0]);
    Blocks state = state_;
    const int64_t huge = std::numeric_limits<int64_t>::max();
    const int64_t each[] = {huge, huge, -1, -huge};
    ASSERT_EQ(state.act[counts].size(), sizeof each);
    std::memcpy(state.act[counts].data(), each, sizeof each);
    Blocks wanted = state, found = state;
    if (phase == SPF_FWD) {
      host_.Run(wanted, node, phase);
      device_.Run(found, node, phase);
    }
    EXPECT_EQ(FirstDifference(host_.tables(), SPF_F32, found, wanted), "");
  });
}

// Fewer rows than the indices ask for: the rest has none.
TEST_F(StaleTest, RowsEndWhereTheyAreSaidToEnd) {
  ModelConfig config = TwoRanks();
  config.moe.capacity_percent = 100;
  const NodeBench host(config);
  const DeviceBench device(config);
  Blocks state = host.Start();
  host.RunSample(state, 0, 0);
  for (int64_t fewer : {0, 1, 5}) {
    Blocks few = state;
    for (int64_t& rows : few.rows) rows = std::min(rows, fewer);
    for (int32_t i = 0; i < host.program().n_nodes; ++i) {
      const spf_node& node = host.program().nodes[i];
      if (!IsRouted(host, node)) continue;
      for (spf_phase phase : kPhases) {
        Blocks wanted = few, found = few;
        host.Run(wanted, node, phase);
        device.Run(found, node, phase);
        EXPECT_EQ(FirstDifference(host.tables(), SPF_F32, found, wanted), "")
            << node.name << " phase " << phase;
      }
    }
  }
}

TEST_F(StaleTest, MoreRowsThanAValueCanHaveAreRefused) {
  for (int64_t rows : {int64_t{-1}, std::numeric_limits<int64_t>::max(), int64_t{33}}) {
    Blocks state = state_;
    std::fill(state.rows.begin(), state.rows.end(), rows);
    ForEachNode(Op::kGroupedLinear, [&](const spf_node& node, spf_phase phase) {
      EXPECT_THROW(device_.Run(state, node, phase), std::invalid_argument) << rows;
    });
  }
}

}  // namespace
}  // namespace shardproof
