// The reference on the simulated machine: random cases, random timings, random illegal
// combinations.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "property_tests/generators.h"
#include "property_tests/property.h"
#include "property_tests/sim_judge.h"

namespace shardproof {
namespace {

std::shared_ptr<const CaseSpace> Space() {
  return std::make_shared<const CaseSpace>(std::vector<int32_t>{1, 2, 3, 4, 5, 6, 8});
}

rc::Gen<TimingPolicy> GenTimingPolicy() {
  return rc::gen::element(TimingPolicy::kEager, TimingPolicy::kLazyComm, TimingPolicy::kLazyCompute,
                          TimingPolicy::kRandom, TimingPolicy::kPct);
}

void AssertConforms(SimJudge& judge, const Case& c, TimingPolicy policy, uint64_t seed) {
  const std::string complaint = judge.Complaint(c, policy, seed);
  if (!complaint.empty()) RC_FAIL(complaint);
}

TEST(SimPropertyTest, LegalCasesConformUnderAnyTiming) {
  SimJudge judge;
  const auto space = Space();
  PropertyOptions options;
  options.evaluations = 40;
  EXPECT_TRUE(CheckProperty(
      "legal cases conform under any timing",
      [&] {
        const GeneratedCase generated = *GenCase(space);
        const TimingPolicy policy = *GenTimingPolicy();
        AssertConforms(judge, generated.spec, policy, *rc::gen::inRange<uint64_t>(1, 1000));
      },
      options));
}

// One way each to make a legal instance illegal, where it is not already.
using Spoil = std::function<void(InstanceSpec&)>;

std::vector<Spoil> Spoils() {
  return {
      [](InstanceSpec& s) { s.strategy = Choice<ShardingStrategy>::Parse("zero9"); },
      [](InstanceSpec& s) { s.outer_strategy = Choice<OuterStrategy>::Parse("full"); },
      [](InstanceSpec& s) { s.optimizer = Choice<Optimizer>::Parse("lion"); },
      [](InstanceSpec& s) { s.param_dtype = Choice<KnobDtype>::Parse("fp8"); },
      [](InstanceSpec& s) { s.grad_comm_dtype = Choice<KnobDtype>::Parse("fp16"); },
      [](InstanceSpec& s) { s.main_grads_dtype = Choice<KnobDtype>::Parse("int8"); },
      [](InstanceSpec& s) { s.microbatches = 0; },
      [](InstanceSpec& s) { s.bucket_size = -1; },
      [](InstanceSpec& s) { s.prefetch_limit_bytes = -2; },
      [](InstanceSpec& s) { s.clip_grad = -1; },
      [](InstanceSpec& s) { s.average_in_collective = s.per_token_loss = true; },
      [](InstanceSpec& s) { s.outer = 0; },
      [](InstanceSpec& s) { s.outer = DpCpSize(s) + 1; },
      [](InstanceSpec& s) {
        s.outer_strategy = OuterStrategy::kOptim, s.strategy = ShardingStrategy::kOptimGrads;
      },
      [](InstanceSpec& s) {
        s.outer_strategy = OuterStrategy::kOptim, s.strategy = ShardingStrategy::kOptimGradsParams,
        s.outer = 1;
      },
      [](InstanceSpec& s) { s.grid = true, s.order = "tp-tp-cp-ep-dp-pp"; },
      [](InstanceSpec& s) { s.grid = true, s.order = "tp-cp-ep-dp-pp-xp"; },
      [](InstanceSpec& s) { s.grid = true, s.pp = s.span + 1; },
      [](InstanceSpec& s) { s.grid = true, s.etp = 0; },
      [](InstanceSpec& s) { s.grid = false, s.twin = GatherTwin::kPermuted; },
      [](InstanceSpec& s) { s.grid = false, s.twin = GatherTwin::kShort; },
      [](InstanceSpec& s) { s.grid = false, s.twin = GatherTwin::kFullSpan; },
      [](InstanceSpec& s) { s.grid = false, s.twin = GatherTwin::kDefaultOrder; },
  };
}

TEST(SimPropertyTest, IllegalCombinationsAreRefused) {
  SimJudge judge;
  const auto space = Space();
  const std::vector<Spoil> spoils = Spoils();
  PropertyOptions options;
  options.evaluations = 60;
  EXPECT_TRUE(CheckProperty(
      "illegal combinations are refused",
      [&] {
        const GeneratedCase generated = *GenCase(space);
        Case c = generated.spec;
        RC_PRE(c.instances[0].span == c.world);
        spoils[*rc::gen::inRange<size_t>(0, spoils.size())](c.instances[0]);
        try {
          Derive(c);
        } catch (const std::invalid_argument&) {
          RC_DISCARD("cannot be asked");
        }
        RC_PRE(!c.illegal.empty());
        const TimingPolicy policy = *GenTimingPolicy();
        AssertConforms(judge, c, policy, *rc::gen::inRange<uint64_t>(1, 1000));
      },
      options));
}

}  // namespace
}  // namespace shardproof
