// Layer-wise engines on the simulated machine: random grids, buckets, transports, models and
// optimizers, entry calls in any order, random timings; and random illegal combinations.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "property_tests/generators.h"
#include "property_tests/property.h"
#include "property_tests/sim_judge.h"

namespace shardproof {
namespace {

std::shared_ptr<const LayerWiseSpace> Space() {
  return std::make_shared<const LayerWiseSpace>(std::vector<int32_t>{1, 2, 3, 4, 5, 8});
}

rc::Gen<TimingPolicy> GenTimingPolicy() {
  return rc::gen::element(TimingPolicy::kEager, TimingPolicy::kLazyComm, TimingPolicy::kLazyCompute,
                          TimingPolicy::kRandom, TimingPolicy::kPct);
}

// Fewer parameters than ranks: one layer, which does not train, so that the embedding, the last
// norm and the head are left; the embedding alone if it is tied and norms are frozen instead.
void Shrink(ModelConfig& model) {
  model.layers = 1;
  model.vocab = model.ffn = 8;
  if (model.frozen.empty()) model.frozen = "layer";
}

// Derives the changed case. False: it cannot be asked.
bool Askable(Case& c) {
  try {
    Derive(c);
  } catch (const std::invalid_argument&) {
    return false;
  }
  return true;
}

TEST(LayerWisePropertyTest, AnyOrderOfCallsConforms) {
  SimJudge judge;
  const auto space = Space();
  PropertyOptions options;
  options.evaluations = 20;
  int few_params = 0;
  EXPECT_TRUE(CheckProperty(
      "layer-wise engines conform in any order of calls",
      [&] {
        Case c = GeneratedCase(*GenCase(space)).spec;
        InstanceSpec& spec = c.instances.front();
        spec.script = *GenScript(9);
        RC_PRE(!spec.script.empty());
        const bool few = *rc::gen::element(false, true, true);
        if (few) Shrink(spec.model);
        RC_PRE(Askable(c) && c.illegal.empty());
        few_params += few ? 1 : 0;
        const TimingPolicy policy = *GenTimingPolicy();
        const auto seed = *rc::gen::inRange<uint64_t>(1, 1000);
        const std::string complaint = judge.Complaint(c, policy, seed);
        if (!complaint.empty()) RC_FAIL(complaint);
      },
      options));
  EXPECT_GT(few_params, 5);
}

// One way each to make a legal layer-wise instance illegal, where it is not already.
using Spoil = std::function<void(InstanceSpec&)>;

std::vector<Spoil> Spoils() {
  return {
      [](InstanceSpec& s) { s.overlap_param_gather = true, s.overlap_grad_reduce = false; },
      [](InstanceSpec& s) { s.outer = 2; },
      [](InstanceSpec& s) { s.strategy = ShardingStrategy::kNoShard; },
      [](InstanceSpec& s) { s.strategy = ShardingStrategy::kOptimGradsParams; },
      [](InstanceSpec& s) { s.layer_wise.layout = Choice<LayerWiseLayout>::Parse("sliced"); },
      [](InstanceSpec& s) { s.layer_wise.transport = Choice<LayerWiseTransport>::Parse("gossip"); },
      [](InstanceSpec& s) { s.layer_wise.buffer = Choice<LayerWiseBuffer>::Parse("params"); },
      [](InstanceSpec& s) {
        s.layer_wise = {LayerWiseLayout::kAligned, LayerWiseTransport::kBroadcast,
                        LayerWiseBuffer::kOwn};
      },
      [](InstanceSpec& s) {
        s.layer_wise = {LayerWiseLayout::kAligned, LayerWiseTransport::kAllGatherV,
                        LayerWiseBuffer::kGrads};
      },
      [](InstanceSpec& s) {
        s.layer_wise = {LayerWiseLayout::kDealt, LayerWiseTransport::kPadded,
                        LayerWiseBuffer::kGrads};
      },
      [](InstanceSpec& s) {
        s.layer_wise = {LayerWiseLayout::kDealt, LayerWiseTransport::kBroadcast,
                        LayerWiseBuffer::kGrads};
        s.param_dtype = KnobDtype::kFp32, s.main_grads_dtype = KnobDtype::kBf16;
      },
      [](InstanceSpec& s) { s.bucket_size = -1; },
      [](InstanceSpec& s) { s.skip_norm = -1; },
      [](InstanceSpec& s) {
        s.optimizer = Optimizer::kMuon, s.muon.coefficients = MuonCoefficients::kAol;
      },
  };
}

TEST(LayerWisePropertyTest, IllegalCombinationsAreRefused) {
  SimJudge judge;
  const auto space = Space();
  const std::vector<Spoil> spoils = Spoils();
  PropertyOptions options;
  options.evaluations = 40;
  EXPECT_TRUE(CheckProperty(
      "illegal layer-wise combinations are refused",
      [&] {
        Case c = GeneratedCase(*GenCase(space)).spec;
        RC_PRE(c.instances[0].span == c.world);
        spoils[*rc::gen::inRange<size_t>(0, spoils.size())](c.instances[0]);
        RC_PRE(Askable(c) && !c.illegal.empty());
        const TimingPolicy policy = *GenTimingPolicy();
        const auto seed = *rc::gen::inRange<uint64_t>(1, 1000);
        const std::string complaint = judge.Complaint(c, policy, seed);
        if (!complaint.empty()) RC_FAIL(complaint);
      },
      options));
}

}  // namespace
}  // namespace shardproof
