// Routed experts in the oracle: the same training for every ep, exact sums, and faults that would
// show.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "conformance/oracle/oracle.h"
#include "conformance/oracle/trainer.h"
#include "conformance/oracle/training_for_test.h"
#include "conformance/oracle/update.h"

namespace shardproof {
namespace {

TEST(MoeOracleTest, HowManyRanksShareTheExpertsIsNotSeen) {
  const OracleRun one = RunId("w8.zero3.moe8.shared.aux.zloss");
  ExpectEqualTraining(one, RunId("w8.zero3.ep2.moe8.shared.aux.zloss"));
  ExpectEqualTraining(one, RunId("w8.zero3.ep8.moe8.shared.aux.zloss"));
  ExpectEqualTraining(one, RunId("w2.zero2.k4.ep2.moe8.shared.aux.zloss"));
  ExpectEqualTraining(RunId("w4.ddp.ep2.moe4.skew=rank.cap75"),
                      RunId("w4.ddp.ep4.moe4.skew=rank.cap75"));
}

// Each tp or cp rank routes its part: without a capacity the choice of a token is its own.
TEST(MoeOracleTest, RoutedPartsAreTheWholeIfNothingIsDropped) {
  const OracleRun whole = RunId("w4.ddp.tp2.etp2.split.moe4.shared");
  ExpectEqualTraining(whole, RunId("w4.ddp.tp2.ep2.split.sp.moe4.shared"));
  ExpectEqualTraining(whole, RunId("w4.ddp.tp2.ep4.split.sp.moe4.shared"));
  const OracleRun drops = RunId("w4.ddp.tp2.ep2.split.sp.moe4.cap75.aux");
  ExpectEqualTraining(drops, RunId("w4.ddp.tp2.ep4.split.sp.moe4.cap75.aux"));
  const OracleRun as_one = RunId("w4.ddp.tp2.etp2.split.moe4.cap75.aux");
  EXPECT_NE(drops.calls.back().weights, as_one.calls.back().weights);
}

// Rows of both tp ranks one after the other, of cp ranks by sample.
TEST(MoeOracleTest, RowsOfEachPartAreCounted) {
  const std::string value = "layers.0.moe.expert_counts";
  const auto rows_of = [&](const char* id, int64_t sample) {
    return RunId(id).calls[1].expert_rows.at({sample, value});
  };
  const std::vector<int64_t> parts = rows_of("w4.ddp.tp2.ep2.split.sp.moe4.do=t", 1);
  const std::vector<int64_t> whole = rows_of("w4.ddp.tp2.etp2.split.moe4.do=t", 1);
  ASSERT_EQ(parts.size(), 2 * whole.size());
  for (size_t e = 0; e < whole.size(); ++e) EXPECT_EQ(parts[e] + parts[e + 4], whole[e]);
  for (const size_t part : {0, 1}) {
    const auto first = parts.begin() + (part == 0 ? 0 : 4);
    EXPECT_EQ(std::accumulate(first, first + 4, int64_t{0}), 8);  // two choices of four tokens
  }
  for (const int64_t sample : {0, 1}) {
    const std::vector<int64_t> rows = rows_of("w2.ddp.cp2.ctx.moe4.do=t", sample);
    EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), int64_t{0}), 16);
  }
}

TEST(MoeOracleTest, EveryExpertOfEveryRankIsThere) {
  const OracleRun run = RunId("w4.ddp.ep4.moe4.do=t");
  for (int expert = 0; expert < 4; ++expert) {
    const std::string name = "layers.1.moe.experts." + std::to_string(expert) + ".fc1.weight";
    ASSERT_EQ(run.calls[1].grads.count(name), 1u) << name;
    EXPECT_NE(run.calls[1].grads.at(name), std::vector<float>(run.calls[1].grads.at(name).size()));
  }
}

TEST(MoeOracleTest, AnExpertWithoutTokensHasAGradientOfZeros) {
  const OracleRun run = RunId("w4.ddp.ep4.moe4.skew=empty.do=t");
  const std::vector<float>& grad = run.calls[1].grads.at("layers.1.moe.experts.3.fc2.weight");
  EXPECT_EQ(grad, std::vector<float>(grad.size()));
}

TEST(MoeOracleTest, ThePublishedLossIsTheMainOne) {
  const OracleRun with = RunId("w4.ddp.ep2.moe4.mtp.do=t"), without = RunId("w4.ddp.ep2.moe4.do=t");
  EXPECT_EQ(with.calls[1].losses, without.calls[1].losses);
  EXPECT_NE(with.calls[1].grads.at("head.weight"), without.calls[1].grads.at("head.weight"));
}

TEST(MoeOracleTest, AuxiliaryLossesReachTheRouter) {
  const std::string router = "layers.0.moe.router.weight";
  const std::vector<float> plain = RunId("w4.ddp.moe4.do=t").calls[1].grads.at(router);
  EXPECT_NE(RunId("w4.ddp.moe4.aux.do=t").calls[1].grads.at(router), plain);
  EXPECT_NE(RunId("w4.ddp.moe4.zloss.do=t").calls[1].grads.at(router), plain);
}

const char* const kVaried[] = {"w8.zero3.k2.ep2.moe4",
                               "w8.zero3.ep4.moe8.score=presoftmax.shared",
                               "w8.zero3.ep4.moe4.top1.score=sigmoid.aux.zloss.bias",
                               "w8.zero3.ep4.moe8.groups4.topgroups2.aux",
                               "w8.zero3.k2.ep4.moe8.cap75.shared",
                               "w8.zero3.ep2.moe4.cap125.pad.bias",
                               "w8.zero3.ep4.moe4.skew=one.layers3.moelayers=odd",
                               "w8.zero3.ep4.moe4.skew=empty.adamw",
                               "w8.zero3.ep2.moe4.skew=rank.shared",
                               "w8.zero3.ep4.moe8.mtp.shared.zloss",
                               "w8.zero3.ep2.moe4.mtp.tied.bias.root.seq4",
                               "w8.zero3.ep2.moe4.bf16.aux",
                               "w6.zero3.ep2.moe4.score=sigmoid.bias"};

TEST(MoeOracleTest, EverySumIsExactFewValuesAreClampedAndGradientsLive) {
  for (const char* id : kVaried) {
    OracleRun run;
    ASSERT_NO_THROW(run = RunId(id, true)) << id;
    EXPECT_LT(run.saturated_fraction, 0.05) << id;
    EXPECT_LT(run.zero_grad_fraction, std::string(id).find("skew") != std::string::npos ? 0.6 : 0.2)
        << id;
  }
}

TEST(MoeOracleTest, TheNarrowProfileIsExactToo) {
  for (const char* id : {"w8.zero3.ep2.moe4.bf16.wire=bf16.acc=bf16.aux",
                         "w8.zero3.ep4.moe8.wire=bf16.shared.mtp.seq4"}) {
    EXPECT_NO_THROW(RunId(id, true)) << id;
  }
}

// --- would a fault show?

class MoeFaultTest : public testing::Test {
 protected:
  MoeFaultTest() : model_(Config(), 64), trainer_(model_, probe_) {}
  static ModelConfig Config() {
    ModelConfig config;
    config.moe.experts = 4;
    config.moe.aux_loss = config.moe.shared = true;
    config.mtp = true;
    return config;
  }
  // Gradients of a step in which one sample may meet other weights.
  OracleState Gradients(size_t stale, bool hit) {
    OracleState state = trainer_.InitialState();
    trainer_.ZeroGrads(state);
    for (int64_t sample = 0; sample < 8; ++sample) {
      std::vector<float>& weight = state.params[stale].weight;
      const std::vector<float> kept = weight;
      if (hit && sample == 3) std::rotate(weight.begin(), weight.begin() + 1, weight.end());
      trainer_.RunSample(state, 0, sample, 0, true);
      weight = kept;
    }
    return state;
  }

  Probe probe_;
  Model model_;
  Trainer trainer_;
};

TEST_F(MoeFaultTest, AnyWrongTensorOfOneSampleShows) {
  const OracleState good = Gradients(0, false);
  for (size_t stale = 0; stale < good.params.size(); ++stale) {
    const OracleState bad = Gradients(stale, true);
    bool shows = false;
    for (size_t i = 0; i < good.params.size(); ++i)
      shows |= good.params[i].grad != bad.params[i].grad;
    EXPECT_TRUE(shows) << good.params[stale].name;
  }
}

}  // namespace
}  // namespace shardproof
