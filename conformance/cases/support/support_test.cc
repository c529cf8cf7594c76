// Engines here are predicates on cases: what is learnt of them, and what they are asked then, is
// compared with the predicate.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "conformance/cases/support/fitted_profile.h"
#include "conformance/cases/support/learn.h"
#include "conformance/cases/support/random_cases.h"
#include "conformance/cases/support/still_open.h"

namespace shardproof {
namespace {

using Engine = bool (*)(const InstanceSpec&);

// ZeRO-1 in full precision, with SGD, on all of a world.
bool SmallEngine(const InstanceSpec& spec) {
  return spec.strategy == ShardingStrategy::kOptim && spec.optimizer == Optimizer::kSgd &&
         spec.param_dtype == KnobDtype::kFp32 && spec.grad_comm_dtype == KnobDtype::kFp32 &&
         spec.main_grads_dtype == KnobDtype::kFp32 && spec.outer == 1 && spec.tp == 1 &&
         spec.cp == 1 && spec.pp == 1 && spec.ep == 1 && spec.model.moe.experts == 0 &&
         !spec.model.experts && !spec.grid && !spec.nccl_ub;
}

// DDP and FSDP; recomputes with FSDP only.
bool TwoStrategies(const InstanceSpec& spec) {
  const bool fsdp = spec.strategy == ShardingStrategy::kOptimGradsParams;
  return (fsdp || spec.strategy == ShardingStrategy::kNoShard) && (fsdp || !spec.recompute) &&
         spec.ep == 1 && !spec.model.experts && spec.model.moe.experts == 0;
}

class SupportTest : public testing::Test {
 protected:
  Learnt Learn(Engine engine) {
    return LearnSupport(spaces_, 4, [engine](const std::vector<Case>& cases) {
      std::vector<TakeAnswer> answers;
      for (const Case& c : cases)
        answers.push_back(engine(c.instances.front()) ? TakeAnswer::kTakes : TakeAnswer::kDeclines);
      return answers;
    });
  }

  Spaces kept_;
  std::vector<CaseFactors> spaces_ = FactorsUpTo(4, kept_);
};

TEST_F(SupportTest, LearnsTheValuesOfASmallEngine) {
  const Learnt learnt = Learn(SmallEngine);
  ASSERT_EQ(learnt.supported.size(), 1u);
  const SupportedValues& values = learnt.supported.at("strategies").values;
  EXPECT_EQ(values.at("strategy"), std::set<std::string>{"optim"});
  EXPECT_EQ(values.at("optimizer"), std::set<std::string>{"sgd"});
  EXPECT_EQ(values.at("param_dtype"), std::set<std::string>{"fp32"});
  EXPECT_EQ(values.at("tp"), std::set<std::string>{"1"});
  EXPECT_EQ(values.at("recompute").size(), 2u);
  EXPECT_EQ(values.at("world"), (std::set<std::string>{"1", "2", "3", "4"}));
  EXPECT_LT(learnt.asked, 2000);
}

TEST_F(SupportTest, AsksAValueWithEachStrategy) {
  const SupportedValues values = Learn(TwoStrategies).supported.at("strategies").values;
  EXPECT_EQ(values.at("strategy"), (std::set<std::string>{"no_shard", "optim_grads_params"}));
  EXPECT_EQ(values.at("recompute").size(), 2u);
}

// Overlaps both communications or none.
bool BothOrNone(const InstanceSpec& spec) {
  return SmallEngine(spec) && spec.overlap_grad_reduce == spec.overlap_param_gather;
}
TEST_F(SupportTest, AsksWhatIsTakenOnlyTogether) {
  const SupportedValues values = Learn(BothOrNone).supported.at("strategies").values;
  EXPECT_EQ(values.at("overlap_grad_reduce").size(), 2u);
  EXPECT_EQ(values.at("overlap_param_gather").size(), 2u);
}

// What a profile left open is asked in plain cases: after them each pair that the engine takes was.
TEST_F(SupportTest, WhatAProfileLeftOpenIsAsked) {
  const Learnt learnt = Learn(BothOrNone);
  std::vector<Case> judged;
  for (const Case& c : FittedCases(spaces_, learnt.supported, 2, 4, 1)) {
    if (BothOrNone(c.instances.front())) judged.push_back(c);
  }
  const auto open = [&] {
    return OpenCombinations(spaces_, learnt.supported, learnt.rows, judged, 2, 4, 1, 5000);
  };
  size_t declined = 0;
  const size_t before = judged.size();
  for (const Case& c : open()) {
    if (BothOrNone(c.instances.front())) {
      judged.push_back(c);
    } else {
      ++declined;
    }
  }
  EXPECT_GT(judged.size(), before);
  for (const Case& c : open())  // what it does not take, and nothing else
    EXPECT_FALSE(BothOrNone(c.instances.front())) << Id(c);
  EXPECT_GT(declined, 0u);
  EXPECT_TRUE(OpenValues(spaces_, learnt.supported, learnt.rows, judged, 4, 1).empty());
}

TEST_F(SupportTest, AValueThatNoCaseJudgedIsAskedInACaseThatTheEngineTook) {
  const Learnt learnt = Learn(BothOrNone);
  std::vector<Case> judged = FittedCases(spaces_, learnt.supported, 2, 4, 1);
  std::erase_if(judged, [](const Case& c) { return c.instances.front().overlap_param_gather; });
  const std::vector<OpenValue> open =
      OpenValues(spaces_, learnt.supported, learnt.rows, judged, 4, 1);
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].factor + " " + open[0].value, "overlap_param_gather 1");
  EXPECT_TRUE(BothOrNone(open[0].with_it.instances.front())) << Id(open[0].with_it);
}

// It ends wherever it is asked to recompute.
TEST_F(SupportTest, AnEndIsAboutTheValueThatWasAsked) {
  const Learnt learnt = LearnSupport(spaces_, 4, [](const std::vector<Case>& cases) {
    std::vector<TakeAnswer> answers;
    for (const Case& c : cases) {
      const InstanceSpec& spec = c.instances.front();
      answers.push_back(spec.recompute      ? TakeAnswer::kEnds
                        : SmallEngine(spec) ? TakeAnswer::kTakes
                                            : TakeAnswer::kDeclines);
    }
    return answers;
  });
  ASSERT_EQ(learnt.supported.size(), 1u);
  EXPECT_EQ(learnt.supported.at("strategies").values.at("strategy"),
            std::set<std::string>{"optim"});
  EXPECT_TRUE(learnt.supported.at("strategies").values.at("recompute").contains("1"));
}

// It ends whatever it is asked: that is to be judged.
TEST_F(SupportTest, AnEngineThatEndsAtOnceIsAskedAllTheSame) {
  const Learnt learnt = LearnSupport(spaces_, 4, [](const std::vector<Case>& cases) {
    return std::vector<TakeAnswer>(cases.size(), TakeAnswer::kEnds);
  });
  EXPECT_FALSE(FittedCases(spaces_, learnt.supported, 2, 4, 1).empty());
}

// Its process forgets to give something back: after 20 cases it declines all.
TEST_F(SupportTest, WhatIsDeclinedForWhatCameBeforeIsTaken) {
  const Learnt learnt = LearnSupport(spaces_, 4, [](const std::vector<Case>& cases) {
    std::vector<TakeAnswer> answers;
    size_t taken = 0;
    for (const Case& c : cases) {
      const bool takes = SmallEngine(c.instances.front()) && taken < 20;
      taken += takes ? 1 : 0;
      answers.push_back(takes ? TakeAnswer::kTakes : TakeAnswer::kDeclines);
    }
    return answers;
  });
  EXPECT_EQ(learnt.supported, Learn(SmallEngine).supported);
}

TEST_F(SupportTest, NothingIsLearntOfAnEngineThatDeclines) {
  EXPECT_TRUE(Learn([](const InstanceSpec&) { return false; }).supported.empty());
}

TEST_F(SupportTest, AnEngineThatTakesEverythingHasAllValues) {
  const Learnt learnt = Learn([](const InstanceSpec&) { return true; });
  ASSERT_EQ(learnt.supported.size(), spaces_.size());
  for (const CaseFactors& space : spaces_) {
    const ValueMask mask = MaskOf(space, learnt.supported.at(space.name).values);
    const std::optional<CoveringProblem> left = Restrict(*space.problem, mask);
    ASSERT_TRUE(left);
    for (size_t i = 0; i < space.problem->relations.size(); ++i)
      EXPECT_EQ(left->relations[i].tuples, space.problem->relations[i].tuples) << space.name;
  }
}

TEST_F(SupportTest, AProfileAsksEveryPairOfWhatTheEngineTakesAndNothingElse) {
  const Supported supported = Learn(SmallEngine).supported;
  const std::vector<Case> cases = FittedCases(spaces_, supported, 2, 4, 1);
  std::vector<size_t> tokens;
  for (const Case& c : cases) {
    EXPECT_TRUE(SmallEngine(c.instances.front())) << Id(c);
    EXPECT_TRUE(Fits(spaces_, supported, c)) << Id(c);
    const std::string id = Id(c);
    tokens.push_back(static_cast<size_t>(std::count(id.begin(), id.end(), '.')) + 1);
  }
  EXPECT_GE(cases.size(), 100u);
  std::nth_element(tokens.begin(), tokens.begin() + std::ptrdiff_t(tokens.size() / 2),
                   tokens.end());
  EXPECT_LE(tokens[tokens.size() / 2], 8u);
  const std::vector<std::string> lines = FittedCoverage(spaces_, supported, cases, 2);
  ASSERT_EQ(lines.size(), spaces_.size());
  EXPECT_EQ(lines[0].find("not judged"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find("no case of them is taken"), std::string::npos) << lines[1];
}

TEST_F(SupportTest, CoverageIsOfJudgedCases) {
  const Supported supported = Learn(SmallEngine).supported;
  std::vector<Case> cases = FittedCases(spaces_, supported, 2, 4, 1);
  cases.resize(cases.size() / 2);
  EXPECT_NE(FittedCoverage(spaces_, supported, cases, 2)[0].find("; not judged: "),
            std::string::npos);
}

// A case is of the space that made it: its pairs are counted there, and it is left out where the
// engine takes nothing of that space.
TEST_F(SupportTest, CasesAreCountedInTheSpaceThatMadeThem) {
  for (const CaseFactors& space : spaces_) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const Case c = space.make(RandomRow(*space.problem, seed), 1);
      EXPECT_EQ(SpaceOf(c), space.name) << Id(c);
    }
  }
  Supported supported = AllOf(spaces_);
  const Case pipeline = ParseId("w4.ddp.pp2.k4.layers4.vpp2");
  EXPECT_TRUE(Fits(spaces_, supported, pipeline));
  EXPECT_EQ(FittedCoverage(spaces_, supported, {pipeline}, 2)[3].find(": 0 judged"),
            std::string::npos);
  supported.erase("pipelines");
  EXPECT_FALSE(Fits(spaces_, supported, pipeline));
}

TEST_F(SupportTest, ACaseWithAValueThatIsNotTakenDoesNotFit) {
  const Supported supported = Learn(SmallEngine).supported;
  EXPECT_TRUE(Fits(spaces_, supported, ParseId("w4.zero1.k2")));
  EXPECT_FALSE(Fits(spaces_, supported, ParseId("w4.zero3.k2")));
  EXPECT_FALSE(Fits(spaces_, supported, ParseId("w4.zero1.adamw")));
  EXPECT_FALSE(Fits(spaces_, supported, ParseId("w4.lw")));
  EXPECT_TRUE(Fits(spaces_, supported, ParseId("w4.strategy=zero9")));  // every engine answers it
  EXPECT_FALSE(IsOfTaken(spaces_, supported, ParseId("w4.strategy=zero9")));
  EXPECT_TRUE(IsOfTaken(spaces_, supported, ParseId("w4.zero1.k2")));
  const Case more = ParseId("w4.zero1.lr0p5");  // no space combines lr
  EXPECT_TRUE(Fits(spaces_, supported, more));
  EXPECT_FALSE(IsOfTaken(spaces_, supported, more));
}

TEST_F(SupportTest, AFileMayNameAFewKnobs) {
  const SupportedValues few{{"strategy", {"optim"}}, {"num_microbatches", {"1"}}};
  EXPECT_THROW(MaskOf(spaces_[0], few), std::invalid_argument);
  EXPECT_THROW(MaskOf(spaces_[0], {{"strategy", {"zero9"}}}), std::invalid_argument);
  const ValueMask mask = MaskOf(spaces_[0], {{"strategy", {"optim"}}});
  const std::vector<Case> cases =
      FittedCases(spaces_, {{"strategies", {ValuesOf(spaces_[0], mask)}}}, 2, 4, 1);
  for (const Case& c : cases) EXPECT_EQ(Id(c).find("adamw"), std::string::npos) << Id(c);
  EXPECT_FALSE(cases.empty());
}

// DDP and FSDP; FSDP neither recomputes nor clips a layer that is used twice.
TEST_F(SupportTest, ValuesThatAreNotTakenTogetherAreInNoCase) {
  Taken taken{{{"strategy", {"no_shard", "optim_grads_params"}},
               {"recompute", {"0", "1"}},
               {"reused", {"0", "1"}},
               {"clip_grad", {"0", "0.5", "1048576"}}},
              {{{"strategy", {"optim_grads_params"}}, {"recompute", {"1"}}},
               {{"reused", {"1"}}, {"clip_grad", {"0.5", "1048576"}}}}};
  const Supported supported{{"strategies", taken}};
  const std::vector<Case> cases = FittedCases(spaces_, supported, 2, 4, 1);
  bool clips = false, reuses = false;
  for (const Case& c : cases) {
    const InstanceSpec& spec = c.instances.front();
    EXPECT_FALSE(spec.strategy != ShardingStrategy::kNoShard && spec.recompute) << Id(c);
    EXPECT_FALSE(spec.clip_grad > 0 && spec.model.reused) << Id(c);
    clips = clips || spec.clip_grad > 0;
    reuses = reuses || spec.model.reused;
  }
  EXPECT_TRUE(clips && reuses);
  EXPECT_EQ(FittedCoverage(spaces_, supported, cases, 2)[0].find("not judged"), std::string::npos);
  EXPECT_TRUE(Fits(spaces_, supported, ParseId("w4.ddp.recompute")));
  EXPECT_FALSE(Fits(spaces_, supported, ParseId("w4.zero3.recompute")));
  EXPECT_FALSE(Fits(spaces_, supported, ParseId("w4.ddp.clip0p5.reused")));
  for (const DrawFrom& from : WhatToDrawFrom(spaces_, supported, 4)) {
    for (uint64_t seed = 1; seed <= 50; ++seed)
      EXPECT_TRUE(Fits(spaces_, supported, MakeCase(Draw({from}, seed)))) << seed;
  }
  const auto sharded = [](const std::vector<Case>& some) {
    return std::count_if(some.begin(), some.end(), [](const Case& c) {
      return c.instances.front().strategy == ShardingStrategy::kOptimGradsParams;
    });
  };
  taken.plain = {{"strategy", "optim_grads_params"}};
  const std::vector<Case> others = FittedCases(spaces_, {{"strategies", taken}}, 2, 4, 1);
  EXPECT_LT(2 * sharded(cases), static_cast<int64_t>(cases.size()));
  EXPECT_GT(2 * sharded(others), static_cast<int64_t>(others.size()));
  taken.changes = 2;
  const std::vector<Case> more = FittedCases(spaces_, {{"strategies", taken}}, 2, 4, 1);
  EXPECT_GT(more.size(), others.size());
  EXPECT_EQ(FittedCoverage(spaces_, {{"strategies", taken}}, more, 2)[0].find("not judged"),
            std::string::npos);
  taken.without.push_back({{"strategy", {"no_shard", "optim_grads_params"}}});
  EXPECT_FALSE(TakenOf(spaces_[0], taken));
  taken.without = {{{"recompute", {"2"}}}};
  EXPECT_THROW(TakenOf(spaces_[0], taken), std::invalid_argument);
}

}  // namespace
}  // namespace shardproof
