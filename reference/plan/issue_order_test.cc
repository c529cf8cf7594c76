#include "reference/plan/issue_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <sstream>

namespace reference {
namespace {

using Texts = std::vector<std::string>;

Texts Words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

Texts Names(const std::vector<ScheduleNode>& nodes) {
  Texts names;
  for (const ScheduleNode& node : nodes) names.push_back(Name(node));
  return names;
}

// Written by hand from the description of the schedule.
TEST(IssueOrder, TwoLayers) {
  EXPECT_EQ(Names(CombinedStepOrder({2, 2, false, false})),
            Words("b.root_pre_backward b.loss f.start f.pre_process b.start b.post_process "
                  "b.1.mtp_post_process.backward b.1.combine.backward f.0.pre_dispatch.forward "
                  "b.1.mlp.backward f.0.dispatch.forward b.1.dispatch.backward f.0.mlp.forward "
                  "f.0.combine.forward b.1.pre_dispatch.backward f.0.mtp_post_process.forward "
                  "b.0.mtp_post_process.backward b.0.combine.backward f.1.pre_dispatch.forward "
                  "b.0.mlp.backward f.1.dispatch.forward b.0.dispatch.backward f.1.mlp.forward "
                  "f.1.combine.forward b.0.pre_dispatch.backward f.1.mtp_post_process.forward "
                  "f.post_process b.pre_process f.end b.end f.loss b.root_post_backward"));
}

TEST(IssueOrder, TwoLayersDelayedWithEarlyRelease) {
  EXPECT_EQ(
      Names(CombinedStepOrder({2, 2, true, true})),
      Words("b.root_pre_backward b.loss f.start f.pre_process b.start b.post_process "
            "b.1.mtp_post_process.backward b.1.combine.backward f.0.pre_dispatch.forward "
            "b.1.mlp.backward f.0.dispatch.forward b.1.mlp.weight_grads b.1.dispatch.backward "
            "b.1.pre_dispatch.backward f.0.mlp.forward f.0.combine.forward "
            "f.0.mtp_post_process.forward b.1.pre_dispatch.weight_grads "
            "b.0.mtp_post_process.backward b.0.combine.backward f.1.pre_dispatch.forward "
            "b.0.mlp.backward f.1.dispatch.forward b.0.mlp.weight_grads b.0.dispatch.backward "
            "b.0.pre_dispatch.backward f.1.mlp.forward f.1.combine.forward "
            "f.1.mtp_post_process.forward b.0.pre_dispatch.weight_grads f.post_process "
            "b.pre_process f.end b.end f.loss b.root_post_backward"));
}

// Two layers forward beside one backward: the second has nothing beside it.
TEST(IssueOrder, UnequalLayers) {
  const Texts names = Names(CombinedStepOrder({2, 1, true, false}));
  const Texts layers(names.begin() + 6, names.end() - 6);
  EXPECT_EQ(
      layers,
      Words("b.0.mtp_post_process.backward b.0.combine.backward f.0.pre_dispatch.forward "
            "b.0.mlp.backward f.0.dispatch.forward b.0.mlp.weight_grads b.0.dispatch.backward "
            "f.0.mlp.forward f.0.combine.forward b.0.pre_dispatch.backward "
            "f.0.mtp_post_process.forward f.1.pre_dispatch.forward f.1.dispatch.forward "
            "f.1.mlp.forward f.1.combine.forward f.1.mtp_post_process.forward "
            "b.0.pre_dispatch.weight_grads"));
}

TEST(IssueOrder, OneSideOnly) {
  EXPECT_EQ(Names(CombinedStepOrder({1, std::nullopt, false, false})),
            (Texts{"f.start", "f.pre_process", "f.0.pre_dispatch.forward", "f.0.dispatch.forward",
                   "f.0.mlp.forward", "f.0.combine.forward", "f.0.mtp_post_process.forward",
                   "f.post_process", "f.end", "f.loss"}));
  EXPECT_EQ(
      Names(CombinedStepOrder({std::nullopt, 1, true, false})),
      Words("b.root_pre_backward b.loss b.start b.post_process b.0.mtp_post_process.backward "
            "b.0.combine.backward b.0.mlp.backward b.0.mlp.weight_grads b.0.dispatch.backward "
            "b.0.pre_dispatch.backward b.0.pre_dispatch.weight_grads b.pre_process b.end "
            "b.root_post_backward"));
}

TEST(IssueOrder, Steps) {
  using Steps = std::vector<StepSides>;
  const auto none = std::nullopt;
  EXPECT_EQ(StepsWithoutPipelining(1), (Steps{{0, none}, {none, 0}}));
  EXPECT_EQ(StepsWithoutPipelining(3), (Steps{{0, none}, {1, 0}, {2, 1}, {none, 2}}));
}

size_t PlaceOf(const Texts& names, const std::string& name) {
  const auto at = std::find(names.begin(), names.end(), name);
  EXPECT_NE(at, names.end()) << name;
  return static_cast<size_t>(at - names.begin());
}

// What a microbatch's backward needs of itself, in any combination.
void ExpectBackwardOrder(const Texts& names, int32_t layers, bool delay) {
  for (int32_t j = layers; j-- > 0;) {
    const std::string b = "b." + std::to_string(j) + ".";
    EXPECT_LT(PlaceOf(names, b + "combine.backward"), PlaceOf(names, b + "mlp.backward"));
    EXPECT_LT(PlaceOf(names, b + "mlp.backward"), PlaceOf(names, b + "dispatch.backward"));
    EXPECT_LT(PlaceOf(names, b + "dispatch.backward"), PlaceOf(names, b + "pre_dispatch.backward"));
    if (delay) {
      EXPECT_LT(PlaceOf(names, b + "mlp.backward"), PlaceOf(names, b + "mlp.weight_grads"));
      EXPECT_LT(PlaceOf(names, b + "pre_dispatch.backward"),
                PlaceOf(names, b + "pre_dispatch.weight_grads"));
    }
    if (j > 0) {
      EXPECT_LT(PlaceOf(names, b + "pre_dispatch.backward"),
                PlaceOf(names, "b." + std::to_string(j - 1) + ".combine.backward"));
    }
  }
}

TEST(IssueOrder, EverythingOnceAndInOrder) {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    const auto f = static_cast<int32_t>(random() % 7), b = static_cast<int32_t>(random() % 7);
    const bool delay = random() % 2 == 0, early = random() % 2 == 0;
    const Texts names = Names(CombinedStepOrder({f, b, delay, early}));
    EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size()) << "each node once";
    EXPECT_EQ(names.size(),
              12U + 5U * static_cast<size_t>(f) + (delay ? 7U : 5U) * static_cast<size_t>(b));
    ExpectBackwardOrder(names, b, delay);
  }
}

// A microbatch's own nodes come in the same order whatever runs beside it: its plan relies on it.
TEST(IssueOrder, SidesDoNotReorderEachOther) {
  for (int32_t layers : {1, 2, 3, 5}) {
    for (int32_t other : {0, 1, 3, 8}) {
      for (int settings = 0; settings < 4; ++settings) {
        const bool delay = (settings & 1) != 0, early = (settings & 2) != 0;
        for (Side side : {Side::kForward, Side::kBackward}) {
          const bool f = side == Side::kForward;
          const auto alone = CombinedStepOrder(f ? StepShape{layers, std::nullopt, delay, early}
                                                 : StepShape{std::nullopt, layers, delay, early});
          std::vector<ScheduleNode> own = CombinedStepOrder(
              f ? StepShape{layers, other, delay, early} : StepShape{other, layers, delay, early});
          std::erase_if(own, [&](const ScheduleNode& node) { return node.side != side; });
          EXPECT_EQ(Names(own), Names(alone));
        }
      }
    }
  }
}

}  // namespace
}  // namespace reference
