// OracleOptions that compute what a certain mistake would give.
#include <gtest/gtest.h>

#include <cmath>

#include "conformance/cases/case.h"
#include "conformance/oracle/oracle.h"

namespace shardproof {
namespace {

TEST(Mistakes, SamplesAddUpToTheGradient) {
  const Case c = ParseId("w3.zero3.k2.do=tt");
  OracleOptions options;
  options.keep_samples = true;
  const OracleRun run = RunOracle(c, 0, options), plain = RunOracle(c, 0);
  for (const size_t call : {1u, 2u}) {
    EXPECT_EQ(run.calls[call].grads, plain.calls[call].grads);
    EXPECT_EQ(run.calls[call].weights, plain.calls[call].weights);
    ASSERT_EQ(run.calls[call].sample_grads.size(), 6u);
    EXPECT_TRUE(plain.calls[call].sample_grads.empty());
    for (const auto& [name, grad] : plain.calls[call].grads) {
      for (size_t i = 0; i < grad.size(); ++i) {
        double sum = 0;
        for (const auto& sample : run.calls[call].sample_grads) sum += double{sample.at(name)[i]};
        EXPECT_NEAR(sum, double{grad[i]}, 1e-6 * std::abs(sum)) << name << "[" << i << "]";
      }
    }
  }
}

TEST(Mistakes, EvaluationsThatCountMoveAdamwAlone) {
  OracleOptions options;
  options.evals_count = true;
  for (const bool adamw : {false, true}) {
    const Case c = ParseId(adamw ? "w2.ddp.adamw.do=tet" : "w2.ddp.do=tet");
    const OracleRun run = RunOracle(c, 0, options), plain = RunOracle(c, 0);
    EXPECT_EQ(run.calls[1].weights, plain.calls[1].weights);
    EXPECT_EQ(run.calls[3].grads, plain.calls[3].grads);
    EXPECT_EQ(run.calls[3].weights == plain.calls[3].weights, !adamw);
  }
}

TEST(Mistakes, AnotherNormClipsOtherwiseInOneCallAlone) {
  const Case c = ParseId("w2.ddp.clip0p5.do=tt");
  const OracleRun plain = RunOracle(c, 0);
  for (const double times : {1.0, 2.0}) {
    OracleOptions options;
    options.clip_call = 2;
    options.clip_norm = times * plain.calls[2].grad_norm;
    const OracleRun run = RunOracle(c, 0, options);
    EXPECT_EQ(run.calls[1].weights, plain.calls[1].weights);
    EXPECT_EQ(run.calls[2].grad_norm, plain.calls[2].grad_norm);
    EXPECT_EQ(run.calls[2].weights == plain.calls[2].weights, times == 1);
  }
}

TEST(Mistakes, NothingIsPlayedAfterTheLastCallThatIsAsked) {
  OracleOptions options;
  options.last_call = 1;
  EXPECT_EQ(RunOracle(ParseId("w2.ddp.do=ttt"), 0, options).calls.size(), 2u);
}

}  // namespace
}  // namespace shardproof
