// Each node of each program: gradients against finite differences, phases, scales and dtypes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include "conformance/model/node_bench.h"

namespace shardproof {
namespace {

class NodeTest : public testing::TestWithParam<size_t> {
 protected:
  ModelConfig Config() const { return VariedConfigs()[GetParam()]; }
};

bool Has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

size_t Count(const Block& block) { return block.size() / sizeof(float); }

// The value whose gradient backward reads for `out`: its own, or one of the whole sequence.
int32_t GradientOf(const spf_node& node, int32_t out) {
  const spf_uses& uses = node.uses[SPF_BWD];
  int32_t other = out;
  for (int32_t u = 0; u < uses.n; ++u) {
    if (uses.use[u].table != SPF_IN_DACT || uses.use[u].access != SPF_READ) continue;
    if (uses.use[u].id == out) return out;
    other = uses.use[u].id;
  }
  return other;
}

// Sum of <gradient of a written value, the value> as a function of what the node reads.
double Score(const NodeBench& bench, Blocks blocks, const spf_node& node) {
  bench.Run(blocks, node, SPF_FWD);
  double score = 0;
  const spf_uses& uses = node.uses[SPF_FWD];
  for (int32_t u = 0; u < uses.n; ++u) {
    const int32_t out = uses.use[u].id;
    const spf_value& value = bench.tables().values[out];
    if ((uses.use[u].access & SPF_WRITE) == 0 || value.dtype != SPF_F32) continue;
    const float *y = blocks.Floats(SPF_IN_ACT, out),
                *dy = blocks.Floats(SPF_IN_DACT, GradientOf(node, out));
    const bool loss = value.max_rows * value.row_elems == 1;
    for (size_t i = 0; i < bench.LiveBytes(blocks, out) / sizeof(float); ++i) {
      score += static_cast<double>(y[i]) * (loss ? 1.0 : static_cast<double>(dy[i]));
    }
  }
  return score;
}

void CheckDifferences(const NodeBench& bench, const Blocks& start, const spf_node& node,
                      const spf_use& use, std::mt19937& random) {
  std::normal_distribution<float> normal;
  const int32_t input_table = use.table == SPF_IN_GRAD ? SPF_IN_PARAM : SPF_IN_ACT;
  Blocks before = start, plus = start, minus = start;
  const size_t count = Count(before.Table(use.table)[static_cast<size_t>(use.id)]);
  std::memset(before.Floats(use.table, use.id), 0, count * sizeof(float));
  bench.Run(before, node, SPF_BWD);
  double analytic = 0, size = 0;
  constexpr float kStep = 1.0f / 256;
  for (size_t i = 0; i < count; ++i) {
    const float direction = normal(random);
    analytic += static_cast<double>(direction) * before.Floats(use.table, use.id)[i];
    size += std::fabs(static_cast<double>(direction) * before.Floats(use.table, use.id)[i]);
    plus.Floats(input_table, use.id)[i] += kStep * direction;
    minus.Floats(input_table, use.id)[i] -= kStep * direction;
  }
  const double numeric = (Score(bench, plus, node) - Score(bench, minus, node)) / (2.0 * kStep);
  EXPECT_NEAR(numeric, analytic, 4e-3 * size + 2e-2)
      << node.name << " table " << int(use.table) << " id " << use.id;
}

TEST_P(NodeTest, GradientsAreThoseOfFiniteDifferences) {
  ModelConfig config = Config();
  config.quantised = false;
  config.bf16_params = config.narrow = false;
  config.d_odd = 1;
  const NodeBench bench(config);
  Blocks start = bench.Start();
  bench.RunSample(start, 0, 0);
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  for (Block& block : start.dact) {
    for (size_t i = 0; i < Count(block); ++i)
      reinterpret_cast<float*>(block.data())[i] = normal(random);
  }
  const spf_program& program = bench.program();
  int32_t checked = 0;
  for (int32_t n = 0; n < program.n_nodes; ++n) {
    const spf_node& node = program.nodes[n];
    // A router's choices are steps, and its auxiliary losses are in no value: moe_kernels_test has
    // its own.
    if (Has(bench.tables().modules[node.module].type, "Router")) continue;
    if (node.uses[SPF_FWD].n == 0) continue;
    // Its forward does not read the logits that it has the gradient of: split_loss.h's sums do.
    if (bench.model().config().vocab_parallel && Has(node.name, "loss")) continue;
    for (int32_t i = 0; i < node.uses[SPF_BWD].n; ++i) {
      const spf_use& use = node.uses[SPF_BWD].use[i];
      if ((use.access & SPF_WRITE) == 0) continue;
      CheckDifferences(bench, start, node, use, random);
      ++checked;
    }
  }
  EXPECT_GT(checked, 20);
}

TEST_P(NodeTest, DgradThenDelayedWgradEqualsBackward) {
  const NodeBench bench(Config());
  Blocks merged = bench.Start(), split = bench.Start();
  for (int64_t sample = 0; sample < 3; ++sample) {
    bench.RunSample(merged, 0, sample);
    bench.RunSample(split, 0, sample, true);
  }
  EXPECT_EQ(merged, split);
}

TEST_P(NodeTest, SamplesMayBeAccumulatedInAnyOrder) {
  const NodeBench bench(Config());
  Blocks forwards = bench.Start(), backwards = bench.Start();
  for (int64_t sample = 0; sample < 4; ++sample) bench.RunSample(forwards, 0, sample);
  for (int64_t sample = 4; sample-- > 0;) bench.RunSample(backwards, 0, sample);
  EXPECT_EQ(forwards.grad, backwards.grad);
}

TEST_P(NodeTest, ALossScaleScalesGradientsExactly) {
  const NodeBench bench(Config());
  Blocks plain = bench.Start(), scaled = bench.Start();
  bench.RunSample(plain, 0, 0);
  bench.RunSample(scaled, 0, 0, false, 1.0 / 8);
  bool any = false;
  for (int32_t id = 0; id < bench.tables().n_params; ++id) {
    for (int64_t i = 0; i < bench.tables().params[id].numel; ++i) {
      ASSERT_EQ(scaled.Floats(SPF_IN_GRAD, id)[i] * 8, plain.Floats(SPF_IN_GRAD, id)[i]);
      any |= plain.Floats(SPF_IN_GRAD, id)[i] != 0;
    }
  }
  EXPECT_TRUE(any);
}

TEST_P(NodeTest, EveryTrainableParameterGetsAGradient) {
  const NodeBench bench(Config());
  Blocks blocks = bench.Start();
  for (int64_t sample = 0; sample < 4; ++sample) bench.RunSample(blocks, 0, sample);
  for (int32_t id = 0; id < bench.tables().n_params; ++id) {
    bool any = false;
    for (int64_t i = 0; i < bench.tables().params[id].numel; ++i)
      any |= blocks.Floats(SPF_IN_GRAD, id)[i] != 0;
    EXPECT_EQ(any, (bench.tables().params[id].flags & SPF_PARAM_FROZEN) == 0)
        << bench.tables().params[id].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, NodeTest, testing::Range<size_t>(0, VariedConfigs().size()));

TEST(NodeScaleTest, TheOddDivisorMultipliesGradients) {
  ModelConfig config;
  const NodeBench plain(config);
  config.d_odd = 3;
  const NodeBench odd(config);
  Blocks once = plain.Start(), thrice = odd.Start();
  plain.RunSample(once, 0, 0);
  odd.RunSample(thrice, 0, 0);
  for (int32_t id = 0; id < plain.tables().n_params; ++id) {
    for (int64_t i = 0; i < plain.tables().params[id].numel; ++i) {
      ASSERT_EQ(thrice.Floats(SPF_IN_GRAD, id)[i], 3 * once.Floats(SPF_IN_GRAD, id)[i]);
    }
  }
}

void ExpectTheSameInBf16(const ModelConfig& config) {
  const NodeBench bench(config, 256);
  Blocks wide = bench.Start(), narrow = bench.Start();
  for (int64_t sample = 0; sample < 32; ++sample) {
    bench.RunSample(wide, 0, sample);
    bench.RunSample(narrow, 0, sample, false, 1, SPF_BF16);
  }
  for (int32_t id = 0; id < bench.tables().n_params; ++id) {
    const auto* bits =
        reinterpret_cast<const uint16_t*>(narrow.grad[static_cast<size_t>(id)].data());
    for (int64_t i = 0; i < bench.tables().params[id].numel; ++i) {
      ASSERT_EQ(FromBf16(bits[i]), wide.Floats(SPF_IN_GRAD, id)[i])
          << bench.tables().params[id].name;
    }
  }
}

TEST(NodeDtypeTest, NarrowGradientsAreTheSameInBf16) {
  ModelConfig config;
  config.narrow = true;
  ExpectTheSameInBf16(config);
  config.moe.experts = 4;
  config.moe.aux_loss = config.moe.shared = true;
  ExpectTheSameInBf16(config);
}

TEST(NodeDtypeTest, WideGradientsAreNotTheSameInBf16) {
  const NodeBench bench(ModelConfig{}, 256);
  Blocks wide = bench.Start(), narrow = bench.Start();
  for (int64_t sample = 0; sample < 4; ++sample) {
    bench.RunSample(wide, 0, sample);
    bench.RunSample(narrow, 0, sample, false, 1, SPF_BF16);
  }
  bool differs = false;
  for (int32_t id = 0; id < bench.tables().n_params; ++id) {
    const auto* bits =
        reinterpret_cast<const uint16_t*>(narrow.grad[static_cast<size_t>(id)].data());
    for (int64_t i = 0; i < bench.tables().params[id].numel; ++i) {
      differs |= FromBf16(bits[i]) != wide.Floats(SPF_IN_GRAD, id)[i];
    }
  }
  EXPECT_TRUE(differs);
}

TEST(NodeScaleTest, AScaleThatIsNoPowerOfTwoIsRefused) {
  const NodeBench bench(ModelConfig{});
  Blocks blocks = bench.Start();
  EXPECT_THROW(bench.RunSample(blocks, 0, 0, false, 1.0 / 3), std::invalid_argument);
}

}  // namespace
}  // namespace shardproof
