// Plans of layer-wise steps: whatever programs ranks have and whatever calls came before, values
// are fresh when they are read, each bucket is gathered once after an install, all ranks issue the
// same sequences, at most two gathers are under way, and none writes into gradients.
//
// Ranks share tables and entry calls. Their programs differ in what they read, in which order, and
// in what they leave out.
#include <gtest/gtest.h>

#include <deque>
#include <numeric>
#include <string>
#include <vector>

#include "property_tests/layer_wise_device.h"
#include "property_tests/property.h"

namespace shardproof {
namespace {

constexpr int kRanks = 3;

// What all ranks share. One parameter a bucket group.
struct Tables {
  explicit Tables(std::vector<reference::GroupFacts> of)
      : groups(std::move(of)), params(groups.size()) {
    std::iota(params.begin(), params.end(), 0);
    buckets.param_bucket = buckets.bucket_group = buckets.root_groups = params;
    model.n_params = static_cast<int32_t>(params.size());
    model.n_values = 1;  // of the loss
    config.strategy = reference::ShardingStrategy::kLayerWise;
    config.microbatches = *rc::gen::inRange(1, 4);
    config.aligned_layout = *rc::gen::arbitrary<bool>();
    config.overlap_param_gather = *rc::gen::element(true, true, false);
    config.overlap_grad_reduce = *rc::gen::arbitrary<bool>();
  }
  std::vector<reference::GroupFacts> groups;
  std::vector<int32_t> params;  // by bucket group, and the other way round
  reference::ModelPlan buckets;
  spf_model model{};
  reference::Config config;
};

// Nodes that read any parameters, any number of times, and a loss; backward adds to those that
// train.
class AnyProgram {
 public:
  explicit AnyProgram(const Tables& tables) {
    for (const std::vector<int32_t>& reads : AnyReads(tables)) {
      std::vector<spf_use> forward, backward;
      for (const int32_t p : reads) {
        forward.push_back({SPF_IN_PARAM, SPF_READ, 0, p});
        if (!tables.groups.at(static_cast<size_t>(p)).trainable) continue;
        backward.push_back({SPF_IN_PARAM, SPF_READ, 0, p});
        backward.push_back({SPF_IN_GRAD, SPF_ADD, 0, p});
      }
      Add(forward, backward);
    }
    Add({}, {{SPF_IN_DACT, SPF_WRITE, 0, 0}});
    program_ = {sizeof program_, static_cast<int32_t>(nodes_.size()), nodes_.data()};
  }
  AnyProgram(const AnyProgram&) = delete;
  AnyProgram& operator=(const AnyProgram&) = delete;
  const spf_program* get() const { return &program_; }

 private:
  // By node.
  static std::vector<std::vector<int32_t>> AnyReads(const Tables& tables) {
    if (tables.params.empty()) return {};
    const auto any = rc::gen::container<std::vector<int32_t>>(rc::gen::elementOf(tables.params));
    return *rc::gen::resize(6, rc::gen::container<std::vector<std::vector<int32_t>>>(any));
  }
  void Add(const std::vector<spf_use>& forward, const std::vector<spf_use>& backward) {
    spf_node& node = nodes_.emplace_back();
    node.name = "node";
    node.kind = SPF_NODE_COMPUTE;
    node.uses[SPF_FWD] = Keep(forward);
    node.uses[SPF_BWD] = Keep(backward);
  }
  spf_uses Keep(const std::vector<spf_use>& uses) {
    const std::vector<spf_use>& kept = uses_.emplace_back(uses);
    return {static_cast<int32_t>(kept.size()), kept.data()};
  }

  std::deque<std::vector<spf_use>> uses_;
  std::vector<spf_node> nodes_;
  spf_program program_{};
};

enum class Call { kTrain, kEval, kInstall };  // the last one: a load

reference::Plan PlanOf(Call call, const reference::PlanFacts& facts) {
  if (call == Call::kTrain) return reference::PlanTrainStep(facts);
  return call == Call::kEval ? reference::PlanEvalStep(facts) : reference::PlanInstall(facts);
}

struct Rank {
  explicit Rank(const Tables& of) : tables(of), device(of.groups, of.config.aligned_layout) {}

  void Do(Call call) {
    std::deque<AnyProgram> programs;
    reference::PlanFacts facts{tables.model, tables.config, tables.buckets, tables.groups};
    facts.stale = stale;
    for (int32_t m = 0; m < tables.config.microbatches; ++m)
      facts.programs.push_back(programs.emplace_back(tables).get());
    device.Walk(PlanOf(call, facts), tables.params);
    stale = call != Call::kEval && tables.config.overlap_param_gather;
    RC_ASSERT(stale || device.AllFresh());
  }
  const Tables& tables;
  LayerWiseDevice device;
  bool stale = false;  // installed since it was gathered
};

// By group: trainable, and travels, each three times in four.
std::vector<reference::GroupFacts> AnyGroups() {
  const auto mostly = rc::gen::element(true, true, true, false);
  std::vector<reference::GroupFacts> groups;
  for (int g = *rc::gen::inRange(0, 7); g > 0; --g) groups.push_back({64, *mostly, *mostly});
  return groups;
}

TEST(LayerWisePlanPropertyTest, WhateverRanksRunTheirPlansKeepToTheChain) {
  PropertyOptions options;
  options.evaluations = 500;
  int64_t gathers = 0, without = 0;
  EXPECT_TRUE(CheckProperty(
      "layer-wise plans keep to the chain of gathers",
      [&] {
        const Tables tables(AnyGroups());
        std::vector<Rank> ranks(kRanks, Rank(tables));
        for (int calls = *rc::gen::inRange(1, 7); calls > 0; --calls) {
          const Call call =
              *rc::gen::element(Call::kTrain, Call::kTrain, Call::kEval, Call::kInstall);
          for (Rank& rank : ranks) rank.Do(call);
          const LayerWiseDevice& first = ranks.front().device;
          for (const Rank& rank : ranks) {
            RC_ASSERT(rank.device.gathers() == first.gathers());
            RC_ASSERT(rank.device.reductions() == first.reductions());
          }
          gathers += static_cast<int64_t>(first.gathers().size());
          without += first.gathers().empty() ? 1 : 0;
        }
      },
      options));
  EXPECT_GT(gathers, 500);
  EXPECT_GT(without, 100);
}

// L0 N0 L1 R0: launched, needed (compute waits), launched ahead, released (published).
std::string Gathers(const reference::Plan& plan) {
  using reference::Do;
  std::string text;
  for (const reference::Step& step : plan) {
    const char* letter = step.what == Do::kGather    ? "L"
                         : step.what == Do::kNeed    ? "N"
                         : step.what == Do::kRelease ? "R"
                                                     : nullptr;
    if (letter != nullptr) text += letter + std::to_string(step.group) + " ";
  }
  return text;
}

// Buckets come in the reverse of their numbers: forward order.
TEST(LayerWisePlanTest, TheNextGatherStartsBeforeValuesAreCopied) {
  const std::vector<reference::GroupFacts> groups(3, {64, true, true});
  const std::vector<int32_t> ids{0, 1, 2};
  reference::ModelPlan buckets;
  buckets.param_bucket = buckets.bucket_group = buckets.root_groups = ids;
  spf_model model{};
  model.n_params = 3;
  reference::Config config;
  config.strategy = reference::ShardingStrategy::kLayerWise;
  const spf_program program{sizeof program, 0, nullptr};
  reference::PlanFacts facts{model, config, buckets, groups};
  facts.programs = {&program};
  facts.stale = true;
  EXPECT_EQ(Gathers(reference::PlanEvalStep(facts)), "L2 N2 L1 R2 N1 L0 R1 N0 R0 ");
  facts.stale = false;
  EXPECT_EQ(Gathers(reference::PlanEvalStep(facts)), "");
}

}  // namespace
}  // namespace shardproof
