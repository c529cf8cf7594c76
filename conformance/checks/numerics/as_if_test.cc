// Values that are wrong, by the mistake that gives them.
#include "conformance/checks/numerics/as_if.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/numerics/factors.h"
#include "conformance/checks/numerics/numerics.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

using Tensors = std::map<std::string, std::vector<float>>;
using Edit = std::function<void(InstanceSpec&)>;
// What a rank publishes instead of what the oracle says; null: just that.
using Instead = std::function<const Tensors*(int32_t rank, int32_t call)>;

class AsIfs : public testing::Test {
 protected:
  explicit AsIfs() = default;
  void Make(const Edit& edit) {
    mini_ = RunMini(MiniCase(2, edit));
    Options(right_, {});
    *mini_.oracles[0] = right_;
  }
  void Options(OracleRun& run, const OracleOptions& options) {
    run = RunOracle(*mini_.spec, 0, options);
  }

  std::vector<Finding> Found(const Instead& params, const Instead& grads) {
    const InstanceFacts facts(mini_.spec->instances[0], mini_.spec->world);
    for (Trace& trace : mini_.run.traces) {
      for (const Event& event : trace.events) {
        if (event.kind != EventKind::kPublish || event.result > SPF_RESULT_GRAD) continue;
        const bool param = event.result == SPF_RESULT_PARAM;
        const OracleCall& call = At(right_.calls, event.call);
        const Instead& other = param ? params : grads;
        const Tensors* tensors = other ? other(trace.rank, event.call) : nullptr;
        if (tensors == nullptr) tensors = param ? &call.weights : &call.grads;
        const std::vector<float>& values = tensors->at(facts.Param(trace.rank, event.id).name);
        for (int64_t i = 0; i < event.count; ++i)
          At(trace.values, event.values + i) = double{At(values, event.offset + i)};
      }
    }
    return CheckPublished(mini_.run).findings;
  }

  // All findings in the first step, by requirement and text.
  void Expect(const std::vector<Finding>& findings, const std::string& requirement,
              const std::string& text) {
    ASSERT_FALSE(findings.empty());
    EXPECT_EQ(findings[0].requirement, requirement);
    EXPECT_NE(findings[0].message.find(text), std::string::npos) << findings[0].message;
  }

  // The gradients of call 1 with a factor for each sample.
  Tensors Weighted(const std::vector<float>& factors) {
    OracleOptions options;
    options.keep_samples = true;
    OracleRun run;
    Options(run, options);
    Tensors sum = run.calls[1].grads;
    for (auto& [name, values] : sum) {
      std::fill(values.begin(), values.end(), 0.0f);
      for (size_t s = 0; s < factors.size(); ++s) {
        const std::vector<float>& sample = run.calls[1].sample_grads[s].at(name);
        for (size_t i = 0; i < values.size(); ++i) values[i] += factors[s] * sample[i];
      }
    }
    return sum;
  }

  MiniRun mini_;
  OracleRun right_;
};

void TwoMicrobatches(InstanceSpec& spec) { spec.microbatches = 2; }

TEST_F(AsIfs, RightValuesAreNoMistake) {
  for (const Edit& edit : {Edit(TwoMicrobatches), Edit([](InstanceSpec& spec) {
                             spec.optimizer = Optimizer::kAdamw;
                             spec.clip_grad = 0.5;
                             spec.script = "tet";
                           })}) {
    Make(edit);
    EXPECT_TRUE(Found(nullptr, nullptr).empty());
  }
}

TEST_F(AsIfs, AnEvaluationThatCountsAsAnUpdate) {
  Make([](InstanceSpec& spec) {
    spec.optimizer = Optimizer::kAdamw;
    spec.script = "tet";
  });
  OracleOptions options;
  options.evals_count = true;
  OracleRun run;
  Options(run, options);
  Expect(Found([&](int32_t, int32_t call) { return call == 3 ? &run.calls[3].weights : nullptr; },
               nullptr),
         "FS-13", "if eval_step 1 counted as an update");
}

TEST_F(AsIfs, AnUpdateThatClipsByTheNormOfAShard) {
  Make([](InstanceSpec& spec) { spec.clip_grad = 0.5; });
  const Published grads(Analysis(mini_.run), 0, SPF_RESULT_GRAD);
  const InstanceFacts facts(mini_.spec->instances[0], 2);
  std::vector<OracleRun> of_rank(2);
  for (int32_t rank = 0; rank < 2; ++rank) {
    double squares = 0;
    for (int32_t key = 0; key < facts.n_keys(); ++key) {
      const Assembled* seen = grads.Find(1, key);
      if (seen == nullptr) continue;
      const std::vector<float>& values = right_.calls[1].grads.at(facts.ByKey(key).name);
      for (size_t i = 0; i < values.size(); ++i)
        squares += seen->from[i] == rank ? double{values[i]} * double{values[i]} : 0;
    }
    OracleOptions options;
    options.clip_call = 1;
    options.clip_norm = std::sqrt(squares);
    Options(At(of_rank, rank), options);
  }
  Expect(
      Found([&](int32_t rank,
                int32_t call) { return call == 1 ? &At(of_rank, rank).calls[1].weights : nullptr; },
            nullptr),
      "FS-25", "clipped by the norm of what rank 0 alone holds");
}

TEST_F(AsIfs, AnUpdateWithoutClippingIsSaidToBeThat) {
  Make([](InstanceSpec& spec) { spec.clip_grad = 0.5; });
  OracleOptions options;
  options.clip_call = 1;
  OracleRun run;
  Options(run, options);
  Expect(Found([&](int32_t, int32_t call) { return call == 1 ? &run.calls[1].weights : nullptr; },
               nullptr),
         "FS-24", "were not clipped");
}

TEST_F(AsIfs, FactorsOfContributions) {
  Make(TwoMicrobatches);
  struct Row {
    std::vector<float> factors;  // by sample: microbatch, then rank
    const char* requirement;
    const char* text;
  };
  for (const Row& row :
       {Row{{0.25f, 0.25f, 1, 1},
            "FS-17",
            "0.25 for microbatch 0, 1 for microbatch 1: a factor of 0.25 is "
            "applied to the running sum"},
        Row{{1, 0.5f, 1, 0.5f},
            "FS-17",
            "1 for data-parallel rank 0, 0.5 for data-parallel rank 1"},
        Row{{1, 1, 1, 0.125f}, "FS-17", "0.125 for microbatch 1 of data-parallel rank 1"},
        Row{{1, 0, 1, 0}, "FS-15", "0 for data-parallel rank 1"},
        Row{{2, 2, 2, 2}, "FS-17", "every element is 2 times"}}) {
    const Tensors wrong = Weighted(row.factors);
    Expect(Found(nullptr, [&](int32_t, int32_t call) { return call == 1 ? &wrong : nullptr; }),
           row.requirement, row.text);
  }
}

TEST_F(AsIfs, AMistakeThatNobodyKnows) {
  Make(TwoMicrobatches);
  Tensors wrong = right_.calls[1].grads;
  wrong.begin()->second[3] += 1;
  const auto findings =
      Found(nullptr, [&](int32_t, int32_t call) { return call == 1 ? &wrong : nullptr; });
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].requirement, "FS-15");
}

TEST_F(AsIfs, MicrobatchesThatAreAddedUpInBf16) {
  Make([](InstanceSpec& spec) { spec.microbatches = 3; });
  OracleOptions options;
  options.keep_samples = true;
  OracleRun run;
  Options(run, options);
  for (const SumIn how : {SumIn::kBf16OnEachRank, SumIn::kBf16AfterReduction,
                          SumIn::kBf16BeforeReduction, SumIn::kBf16AtTheEnd}) {
    Tensors wrong;
    for (const auto& [name, values] : run.calls[1].grads) {
      Samples samples;
      for (const Tensors& sample : run.calls[1].sample_grads) samples.push_back(&sample.at(name));
      wrong[name] = SumOfSamples(samples, 2, how);
    }
    Expect(Found(nullptr, [&](int32_t, int32_t call) { return call == 1 ? &wrong : nullptr; }),
           "FS-21", "it equals the sum of the microbatches ");
  }
}

}  // namespace
}  // namespace shardproof
