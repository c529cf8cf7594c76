#include "conformance/oracle/oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "conformance/model/probe.h"
#include "conformance/oracle/trainer.h"
#include "conformance/oracle/training_for_test.h"
#include "conformance/oracle/update.h"

namespace shardproof {
namespace {

OracleCall LastTrain(const OracleRun& run) {
  for (size_t i = run.calls.size(); i-- > 0;) {
    if (run.calls[i].letter == 't') return run.calls[i];
  }
  throw std::logic_error("no train step");
}

TEST(OracleTest, OneGlobalBatchSplitDifferentlyIsOneTraining) {
  const OracleRun one = RunId("w1.ddp.k8");
  ExpectEqualTraining(one, RunId("w8.zero3"));
  ExpectEqualTraining(one, RunId("w4.zero2.k2"));
  ExpectEqualTraining(one, RunId("w2.ddp.k4"));
  ExpectEqualTraining(RunId("w8.zero3.k2.adamw.odd.tied.bias.clip5e-1"),
                      RunId("w2.ddp.k8.adamw.odd.tied.bias.clip5e-1"));
}

TEST(OracleTest, DivisorsThatAreNoPowerOfTwoSplitToo) {
  ExpectEqualTraining(RunId("w3.ddp.k2"), RunId("w6.zero3"));
  ExpectEqualTraining(RunId("w3.ddp.k2"), RunId("w1.ddp.k6"));
  ExpectEqualTraining(RunId("w5.ddp"), RunId("w1.ddp.k5"));
}

TEST(OracleTest, ReplicasOverTensorAndPipelineRanksSeeTheSameSamples) {
  ExpectEqualTraining(RunId("w8.ddp.tp2.etp2"), RunId("w4.ddp"));
  ExpectEqualTraining(RunId("w8.ddp.pp2"), RunId("w4.ddp"));
}

TEST(OracleTest, CallsAreThoseOfTheScript) {
  const OracleRun run = RunId("w2.ddp.do=etsltr");
  std::string letters;
  for (const OracleCall& call : run.calls) letters += call.letter;
  EXPECT_EQ(letters, "cetsltdc");
  EXPECT_EQ(run.calls[1].losses.size(), 2u);
  EXPECT_TRUE(run.calls[1].grads.empty());
  EXPECT_TRUE(run.calls[2].updated);
  EXPECT_NE(run.calls[2].weights, run.calls[0].weights);
}

TEST(OracleTest, EvalChangesNothing) {
  const OracleRun plain = RunId("w2.ddp.adamw.do=ttt"), with_eval = RunId("w2.ddp.adamw.do=tetet");
  EXPECT_EQ(LastTrain(plain).weights, LastTrain(with_eval).weights);
  EXPECT_EQ(with_eval.calls[2].losses, plain.calls[2].losses);  // the same step, the same weights
}

TEST(OracleTest, LoadContinuesWhereSaveLeftOff) {
  const OracleRun straight = RunId("w2.ddp.adamw.do=tttt"),
                  detour = RunId("w2.ddp.adamw.do=ttsttltt");
  EXPECT_EQ(LastTrain(straight).weights, LastTrain(detour).weights);
  EXPECT_EQ(detour.calls[6].weights, straight.calls[2].weights);
}

TEST(OracleTest, LoadAfterCreatingAgainRestoresMomentsToo) {
  const OracleRun straight = RunId("w2.ddp.adamw.do=tttt"),
                  again = RunId("w2.ddp.adamw.do=ttsrltt");
  EXPECT_EQ(LastTrain(straight).weights, LastTrain(again).weights);
}

TEST(OracleTest, CreateStartsFromInitialWeights) {
  const OracleRun run = RunId("w2.ddp.adamw.do=ttrtt");
  EXPECT_EQ(run.calls[0].weights, run.calls[4].weights);
  EXPECT_EQ(run.calls[2].weights, run.calls[6].weights);
}

TEST(OracleTest, FrozenParametersHaveNoGradientAndStay) {
  const OracleRun run = RunId("w2.ddp.frozen=norms.wd625e-4");
  EXPECT_EQ(LastTrain(run).grads.count("final_norm.weight"), 0u);
  EXPECT_EQ(LastTrain(run).weights.at("final_norm.weight"),
            run.calls[0].weights.at("final_norm.weight"));
  EXPECT_NE(LastTrain(run).weights.at("head.weight"), run.calls[0].weights.at("head.weight"));
}

TEST(OracleTest, AnAbsentLayerHasZeroGradientsInThatStep) {
  const OracleRun run = RunId("w2.ddp.unused=step.do=tt");
  const std::vector<float>& used = run.calls[1].grads.at("layers.0.mlp.fc1.weight");
  const std::vector<float>& absent = run.calls[2].grads.at("layers.0.mlp.fc1.weight");
  EXPECT_NE(used, std::vector<float>(used.size()));
  EXPECT_EQ(absent, std::vector<float>(used.size()));
}

// In the default order neighbours differ in ep: samples 0 and 2 meet expert 0, samples 1 and 3
// expert 1.
TEST(OracleTest, EachExpertLearnsFromItsOwnSamples) {
  const Case c = ParseId("w4.ddp.ep2.experts.do=t");
  const OracleRun run = RunOracle(c, 0);
  const Model model(c.instances[0].model, 32);
  Probe probe;
  Trainer trainer(model, probe);
  OracleState state = trainer.InitialState();
  for (int64_t sample : {0, 2}) trainer.RunSample(state, 0, sample, 0, true);
  for (int64_t sample : {1, 3}) trainer.RunSample(state, 0, sample, 1, true);
  for (const OracleParam& param : state.params) {
    std::vector<float> quarter;
    for (float value : param.grad) quarter.push_back(value / 4);
    EXPECT_EQ(run.calls[1].grads.at(param.name), quarter) << param.name;
    EXPECT_NE(quarter, std::vector<float>(quarter.size())) << param.name;
  }
}

TEST(OracleTest, ClippingScalesTheUpdateButNotThePublishedGradient) {
  const OracleRun plain = RunId("w2.ddp.do=t"), clipped = RunId("w2.ddp.clip5e-1.do=t"),
                  loose = RunId("w2.ddp.clip1048576.do=t");
  EXPECT_EQ(plain.calls[1].grads, clipped.calls[1].grads);
  EXPECT_NE(plain.calls[1].weights, clipped.calls[1].weights);
  EXPECT_EQ(plain.calls[1].weights, loose.calls[1].weights);
}

TEST(OracleTest, ZerosAreThoseOfTheGradientBeforeClipping) {
  const OracleRun run = RunId("w4.zero2.k2.experts.ep2.frozen=norms.clip5e-1.do=tt");
  for (const OracleCall& call : run.calls) {
    int64_t zeros = 0;
    for (const auto& [name, grad] : call.grads) zeros += std::count(grad.begin(), grad.end(), 0.0f);
    EXPECT_EQ(call.zero_count, static_cast<double>(zeros));
    EXPECT_EQ(call.letter == 't', zeros > 0);
  }
}

TEST(OracleTest, ASkippedStepChangesNothing) {
  const OracleRun run = RunId("w2.ddp.adamw.wd625e-4.skip1e-3.do=tt");
  EXPECT_FALSE(run.calls[1].updated);
  EXPECT_EQ(run.calls[2].weights, run.calls[0].weights);
  EXPECT_GT(run.calls[1].grad_norm, 1e-3);
  EXPECT_FALSE(run.calls[1].grads.empty());
  ExpectEqualTraining(RunId("w2.ddp.adamw.skip1e6"), RunId("w2.ddp.adamw"));
}

// The first step that is short enough updates as if nothing had been before it: AdamW's m is half
// the gradient, and t is 1.
TEST(OracleTest, ASkippedStepLeavesStateAndStepCountAlone) {
  Case c = ParseId("w2.ddp.adamw.skip1e-3.do=tttttttt");
  const OracleRun all_skipped = RunOracle(c, 0);
  size_t first = 2;
  double shortest = all_skipped.calls[1].grad_norm;
  while (all_skipped.calls.at(first).grad_norm >= shortest)
    shortest = std::min(shortest, all_skipped.calls[first++].grad_norm);
  c.instances[0].skip_norm = (shortest + all_skipped.calls[first].grad_norm) / 2;
  const OracleRun run = RunOracle(c, 0);
  for (size_t i = 1; i < first; ++i) EXPECT_FALSE(run.calls[i].updated) << i;
  ASSERT_TRUE(run.calls[first].updated);
  const float lr = 0.015625f, epsilon = 0.0078125f;
  for (const auto& [name, grad] : run.calls[first].grads) {
    for (size_t i = 0; i < grad.size(); ++i) {
      const float u = grad[i] / (std::abs(grad[i]) + epsilon);
      EXPECT_NEAR(run.calls[first].weights.at(name)[i], run.calls[0].weights.at(name)[i] - lr * u,
                  1e-6)
          << name << "[" << i << "]";
    }
  }
}

TEST(OracleTest, AThresholdThatIsTheNormIsNotAsked) {
  Case c = ParseId("w2.ddp.do=t");
  const double norm = RunOracle(c, 0).calls[1].grad_norm;
  for (const double near : {norm, norm * (1 + 5e-7), norm * (1 - 5e-7)}) {
    c.instances[0].skip_norm = near;
    EXPECT_THROW(RunOracle(c, 0), std::invalid_argument);
  }
  c.instances[0].skip_norm = norm * (1 + 2e-6);
  EXPECT_TRUE(RunOracle(c, 0).calls[1].updated);
}

TEST(OracleTest, PerTokenLossDividesByTokens) {
  const OracleRun plain = RunId("w2.ddp.do=t"), per_token = RunId("w2.ddp.pertoken.do=t");
  const std::vector<float>& a = plain.calls[1].grads.at("head.weight");
  const std::vector<float>& b = per_token.calls[1].grads.at("head.weight");
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i], b[i] * 8);  // 8 tokens a sample
}

TEST(OracleTest, IllegalCasesAreNotRun) {
  EXPECT_THROW(RunId("w8.zero3.strategy=zero9"), std::invalid_argument);
}

TEST(OracleBoundsTest, EverySumOfEveryProfileIsExact) {
  for (const char* id :
       {"w8.zero3.k2", "w8.zero3.k2.adamw.do=tttttt", "w8.zero3.odd.tied.bias.root.reused.seq4",
        "w6.zero3.odd.bias", "w8.zero3.ep2.experts.bias.layers3.reused",
        "w8.zero3.bf16.wire=bf16.acc=bf16", "w8.zero3.wire=bf16.tied.odd.bias.root.seq4",
        "w5.ddp.k2.tied", "w6.zero3.wire=bf16.seq4.experts.ep2", "w8.zero3.k2.pertoken",
        "w8.zero3.k3.frozen=layer.unused=rank"}) {
    EXPECT_NO_THROW(RunId(id, true)) << id;
  }
}

TEST(OracleBoundsTest, GradientNormsDoNotDependOnTheOrderOfElements) {
  for (const char* id :
       {"w8.zero3.k2", "w6.zero3.odd.tied.bias", "w5.ddp.k2", "w8.zero3.k3.pertoken"}) {
    const OracleCall call = LastTrain(RunId(id));
    std::vector<double> elements;
    for (const auto& [name, grad] : call.grads)
      elements.insert(elements.end(), grad.begin(), grad.end());
    std::mt19937 random(1);
    for (int trial = 0; trial < 20; ++trial) {
      std::shuffle(elements.begin(), elements.end(), random);
      double squares = 0;
      for (double g : elements) squares += g * g;
      EXPECT_EQ(std::sqrt(squares), call.grad_norm) << id;
    }
  }
}

TEST(OracleBoundsTest, FewValuesAreClamped) {
  for (const char* id : {"w8.zero3.k2.do=tttttttt", "w8.zero3.adamw.k2.do=tttttttt",
                         "w3.ddp.odd.tied.do=tttttttt"}) {
    EXPECT_LT(RunId(id).saturated_fraction, 0.05) << id;
  }
}

TEST(OracleBoundsTest, WeightsMoveVisibly) {
  for (const char* id :
       {"w8.zero3.k2", "w8.zero3.adamw", "w8.zero3.wire=bf16.acc=bf16", "w6.zero3.odd.tied"}) {
    const OracleRun run = RunId(id);
    int64_t moved = 0, all = 0;
    const OracleCall last = LastTrain(run);
    for (const auto& [name, weight] : last.weights) {
      for (size_t i = 0; i < weight.size(); ++i) {
        moved += std::nearbyint(weight[i] * 128) !=
                 std::nearbyint(run.calls[0].weights.at(name)[i] * 128);
        ++all;
      }
    }
    EXPECT_GT(static_cast<double>(moved), 0.05 * static_cast<double>(all)) << id;
  }
}

// --- would a fault show? A run of three steps with one deviation, against the same run without.

class FaultTest : public testing::Test {
 protected:
  FaultTest() : model_(Config(), 64), trainer_(model_, probe_) {}
  static ModelConfig Config() {
    ModelConfig config;
    config.experts = true;
    return config;
  }

  template <typename Fault>
  OracleState Train(Fault fault) {
    UpdateRule rule;
    rule.lr = 0.015625f;
    OracleState state = trainer_.InitialState();
    for (int64_t step = 0; step < 3; ++step) {
      trainer_.ZeroGrads(state);
      const OracleState before = state;
      for (int64_t sample = 0; sample < 8; ++sample) fault(state, step, sample);
      for (OracleParam& param : state.params) {
        for (float& value : param.grad) value = value / 8.0f;
      }
      Update(rule, 0, state);
    }
    return state;
  }
  static bool Differs(const OracleState& a, const OracleState& b) {
    for (size_t i = 0; i < a.params.size(); ++i) {
      if (a.params[i].weight != b.params[i].weight) return true;
    }
    return false;
  }
  OracleState Good() {
    return Train([this](OracleState& state, int64_t step, int64_t sample) {
      trainer_.RunSample(state, step, sample, 0, true);
    });
  }

  Probe probe_;
  Model model_;
  Trainer trainer_;
};

TEST_F(FaultTest, NoFaultNoDifference) { EXPECT_FALSE(Differs(Good(), Good())); }

TEST_F(FaultTest, AMissingMicrobatchShows) {
  EXPECT_TRUE(Differs(Good(), Train([this](OracleState& state, int64_t step, int64_t sample) {
                        if (step != 1 || sample != 3)
                          trainer_.RunSample(state, step, sample, 0, true);
                      })));
}

TEST_F(FaultTest, AnySingleStaleTensorOnOneRankShows) {
  const OracleState good = Good(), initial = trainer_.InitialState();
  for (size_t stale = 0; stale < initial.params.size(); ++stale) {
    const OracleState bad = Train([&](OracleState& state, int64_t step, int64_t sample) {
      const bool hit = step == 2 && sample == 5;
      if (hit)
        std::swap(state.params[stale].weight,
                  const_cast<OracleState&>(initial).params[stale].weight);
      trainer_.RunSample(state, step, sample, 0, true);
      if (hit)
        std::swap(state.params[stale].weight,
                  const_cast<OracleState&>(initial).params[stale].weight);
    });
    EXPECT_TRUE(Differs(good, bad)) << initial.params[stale].name;
  }
}

TEST_F(FaultTest, ADoubledExpertGradientShows) {
  EXPECT_TRUE(Differs(Good(), Train([this](OracleState& state, int64_t step, int64_t sample) {
                        trainer_.RunSample(state, step, sample, 0, true);
                        if (step != 2 || sample != 7) return;
                        for (OracleParam& param : state.params) {
                          if (param.name != "layers.1.experts.0.fc1.weight") continue;
                          for (float& value : param.grad) value = value * 2;
                        }
                      })));
}

// Whether gradients of the first step differ if nodes add to them in bf16.
bool RoundingShows(const std::string& id) {
  const Case c = ParseId(id);
  OracleOptions options;
  options.bf16_node_grads = true;
  const auto plain = RunOracle(c, 0).calls.at(1).grads;
  return RunOracle(c, 0, options).calls.at(1).grads != plain;
}

TEST(OracleTest, NodesMayAddInBf16) {
  EXPECT_TRUE(RoundingShows("w2.zero3.bf16"));
  EXPECT_FALSE(RoundingShows("w2.zero3.bf16.wire16")) << "bf16 holds these gradients";
}

// Ranges of the vocabulary are cut out of a training that knows nothing of them.
TEST(OracleTest, AVocabularyIsCutIntoRanges) {
  const OracleRun whole = RunId("w2.ddp.tp2.etp2.split.tied.do=tt"),
                  ranges = RunId("w2.ddp.tp2.etp2.split.splitvocab.tied.do=tt");
  ASSERT_EQ(ranges.calls.size(), whole.calls.size());
  for (size_t i = 1; i < whole.calls.size(); ++i) {
    const OracleCall &a = whole.calls[i], &b = ranges.calls[i];
    EXPECT_EQ(a.losses, b.losses);
    const std::string name = "embedding.weight";
    ASSERT_TRUE(a.weights.contains(name));
    EXPECT_FALSE(b.weights.contains(name));
    std::vector<float> all = b.weights.at(ShardName(name, 0, 2));
    const std::vector<float>& rest = b.weights.at(ShardName(name, 1, 2));
    all.insert(all.end(), rest.begin(), rest.end());
    EXPECT_EQ(all, a.weights.at(name));
  }
}

}  // namespace
}  // namespace shardproof
