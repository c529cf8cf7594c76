// Experts on several ranks, and layers on several stages, train what one rank alone trains, bit for
// bit.
#include "conformance/model/ep_emulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace shardproof {
namespace {

struct Outcome {
  std::vector<float> losses;  // by sample
  std::map<std::string, std::vector<float>> grads;
  bool operator==(const Outcome&) const = default;
};

constexpr int64_t kSamples = 16;
constexpr int64_t kStep = 1;  // odd: some layers are absent

// One rank, every sample alone.
Outcome Alone(ModelConfig config) {
  config.ep = config.pp = config.chunks = 1;
  const NodeBench bench(config, kSamples * config.sequence);
  Blocks blocks = bench.Start();
  Outcome outcome;
  const spf_model& tables = bench.tables();
  for (int64_t sample = 0; sample < kSamples; ++sample) {
    bench.RunSample(blocks, kStep, sample);
    for (int32_t id = 0; id < tables.n_values; ++id) {
      if ((tables.values[id].flags & SPF_VALUE_LOSS) != 0)
        outcome.losses.push_back(blocks.Floats(SPF_IN_ACT, id)[0]);
    }
  }
  for (int32_t id = 0; id < tables.n_params; ++id) {
    const float* grad = blocks.Floats(SPF_IN_GRAD, id);
    outcome.grads[tables.params[id].name].assign(grad, grad + tables.params[id].numel);
  }
  return outcome;
}

Outcome Together(EpEmulation& emulation, int32_t ep, const EpEmulation::Options& options = {}) {
  Outcome outcome;
  for (int64_t first = 0; first < kSamples; first += ep) {
    std::vector<int64_t> samples(static_cast<size_t>(ep));
    std::iota(samples.begin(), samples.end(), first);
    for (float loss : emulation.Run(kStep, samples, options)) outcome.losses.push_back(loss);
  }
  outcome.grads = emulation.Gradients();
  return outcome;
}

void ExpectEqual(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.losses, b.losses);
  ASSERT_EQ(a.grads.size(), b.grads.size());
  for (const auto& [name, grad] : a.grads) {
    ASSERT_EQ(b.grads.count(name), 1u) << name;
    EXPECT_EQ(grad, b.grads.at(name)) << name;
  }
}

class RoutingTest : public testing::TestWithParam<int32_t> {};

TEST_P(RoutingTest, RanksTogetherTrainWhatOneRankTrains) {
  for (const NamedConfig& named : RoutedConfigs(GetParam())) {
    const Outcome alone = Alone(named.config);
    for (int32_t ep = 1; ep <= GetParam(); ep *= 2) {
      SCOPED_TRACE(named.name + ", ep " + std::to_string(ep));
      ModelConfig config = named.config;
      config.ep = ep;
      EpEmulation emulation(config, kSamples * config.sequence);
      ExpectEqual(alone, Together(emulation, ep));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Experts, RoutingTest, testing::Values(4, 8));

ModelConfig Four() {
  ModelConfig config;
  config.moe.experts = config.ep = 4;
  config.sequence = 4;
  return config;
}

TEST(EpEmulationTest, DelayedWeightGradientsAreTheSame) {
  EpEmulation emulation(Four(), kSamples * 4);
  ExpectEqual(Alone(Four()), Together(emulation, 4, {1, true}));
}

TEST(EpEmulationTest, ALossScaleScalesEverythingExactly) {
  ModelConfig config = Four();
  config.moe.z_loss = config.moe.aux_loss = true;
  EpEmulation emulation(config, kSamples * 4);
  Outcome scaled = Together(emulation, 4, {1024, false});
  for (auto& [name, grad] : scaled.grads) {
    for (float& value : grad) value = value / 1024;
  }
  ExpectEqual(Alone(config), scaled);
}

TEST(EpEmulationTest, AMicrobatchMoreOrAnotherSampleShows) {
  EpEmulation emulation(Four(), 2 * kSamples * 4);
  const Outcome alone = Alone(Four());
  EXPECT_EQ(Together(emulation, 4).grads, alone.grads);
  emulation.Run(kStep, {0, 1, 2, 3});
  const auto more = emulation.Gradients();
  for (const auto& [name, grad] : more) EXPECT_NE(grad, alone.grads.at(name)) << name;
}

TEST(EpEmulationTest, SkewsEmptyAndFillRanks) {
  ModelConfig config = Four();
  config.moe.skew = "rank";
  EpEmulation empty(config, kSamples * 4);
  empty.Run(kStep, {0, 1, 2, 3});
  EXPECT_EQ(empty.received()[3], 0);
  EXPECT_EQ(empty.received()[0] + empty.received()[1], 4 * 4 * 2);
  config.moe.skew = "one";
  EpEmulation full(config, kSamples * 4);
  full.Run(kStep, {0, 1, 2, 3});
  EXPECT_EQ(full.received(), (std::vector<int64_t>{16, 16, 0, 0}));
}

// --- pipeline stages

TEST(PipelineTest, StagesTogetherTrainWhatOneRankTrains) {
  struct Split {
    int32_t layers, pp, chunks;
  };
  for (const Split& split : {Split{4, 2, 2}, {4, 4, 1}, {6, 2, 3}, {2, 2, 1}}) {
    for (int32_t experts : {0, 4}) {
      SCOPED_TRACE(std::to_string(split.pp) + " x " + std::to_string(split.chunks) + ", experts " +
                   std::to_string(experts));
      ModelConfig config = Four();
      config.layers = split.layers;
      config.moe.experts = experts;
      config.ep = experts == 0 ? 1 : 2;
      config.root_param = config.reused = true;
      const Outcome alone = Alone(config);
      config.pp = split.pp;
      config.chunks = split.chunks;
      EpEmulation emulation(config, kSamples * config.sequence);
      ExpectEqual(alone, Together(emulation, config.ep));
    }
  }
}

}  // namespace
}  // namespace shardproof
