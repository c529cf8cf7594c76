// The order in which a 1F1B step that hides all-to-alls is issued: random layers, microbatches and
// settings.
//
// Three descriptions must agree: the checks' order, the reference's, and the two models below,
// which share no code with them: a closed form (each node has a place: step, pair, number within
// the pair), and a state machine that a microbatch walks through.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "conformance/checks/schedule/expected.h"
#include "property_tests/property.h"
#include "property_tests/schedule_model.h"
#include "reference/plan/issue_order.h"

namespace shardproof {
namespace {

using schedule::ExpectedOrder;
using schedule::Key;
using schedule::ScheduleNode;
using schedule::Side;
using schedule::Text;

// ------------------------------------------------------------------ the two descriptions

std::vector<Key> OfChecks(const OrderShape& shape) {
  schedule::Plan plan;
  plan.early_release = shape.early;
  for (const auto& layers : shape.microbatches) {
    plan.layers.emplace_back();
    for (size_t l = 0; l < layers.size(); ++l)
      plan.layers.back().push_back(static_cast<int32_t>(l));
  }
  plan.has = [&](const Key& key) { return Has(shape, key); };
  return ExpectedOrder(plan);
}

std::optional<Key> KeyOf(const reference::ScheduleNode& node, int32_t forward, int32_t backward) {
  using reference::Action;
  const bool f = node.side == reference::Side::kForward;
  Key key{ScheduleNode::kPre, f ? Side::kForward : Side::kBackward, node.layer,
          f ? forward : backward};
  switch (node.action) {
    case Action::kPreProcess:
      return key;
    case Action::kPostProcess:
      key.node = ScheduleNode::kPost;
      return key;
    case Action::kLossForward:
    case Action::kLossBackward:
      key.node = ScheduleNode::kLoss;
      return key;
    case Action::kWeightGrads:
      key.side = Side::kWeights;
      break;
    case Action::kForward:
    case Action::kBackward:
      break;
    default:
      return std::nullopt;  // roots and joins are no schedule nodes of a key
  }
  key.node = kLayerNodes[static_cast<size_t>(node.layer_node)];
  return key;
}

std::vector<Key> OfReference(const OrderShape& shape) {
  const auto layers = [&](const std::optional<int32_t>& m) -> std::optional<int32_t> {
    if (!m) return std::nullopt;
    return static_cast<int32_t>(shape.microbatches[static_cast<size_t>(*m)].size());
  };
  std::vector<Key> order;
  for (const auto& step :
       reference::StepsWithoutPipelining(static_cast<int32_t>(shape.microbatches.size()))) {
    for (const reference::ScheduleNode& node : reference::CombinedStepOrder(
             {layers(step.forward), layers(step.backward), shape.delay, shape.early, false})) {
      const std::optional<Key> key =
          KeyOf(node, step.forward.value_or(-1), step.backward.value_or(-1));
      if (key && Has(shape, *key)) order.push_back(*key);
    }
  }
  return order;
}

rc::Gen<OrderShape> GenShape() {
  return rc::gen::exec([] {
    OrderShape shape;
    shape.delay = *rc::gen::inRange(0, 2) != 0;
    shape.early = *rc::gen::inRange(0, 2) != 0;
    shape.microbatches.resize(*rc::gen::inRange<size_t>(1, 6));
    for (auto& layers : shape.microbatches) {
      layers.resize(*rc::gen::inRange<size_t>(1, 6));
      for (OrderLayer& layer : layers) layer.moe = *rc::gen::inRange(0, 2) != 0;
      layers.back().mtp = *rc::gen::inRange(0, 2) != 0;
    }
    return shape;
  });
}

std::string Lines(const std::vector<Key>& order) {
  std::string text;
  for (const Key& key : order) text += Text(key) + "\n";
  return text;
}

TEST(ScheduleOrderPropertyTest, ThreeDescriptionsAgree) {
  PropertyOptions options;
  options.evaluations = 500;
  EXPECT_TRUE(CheckProperty(
      "orders of issue agree",
      [] {
        const OrderShape shape = *GenShape();
        std::vector<Key> sorted = AllKeys(shape);
        std::sort(sorted.begin(), sorted.end(), [&](const Key& a, const Key& b) {
          return PositionOf(shape, a) < PositionOf(shape, b);
        });
        const std::vector<Key> order = OfChecks(shape);
        RC_ASSERT(Lines(order) == Lines(sorted));
        RC_ASSERT(Lines(OfReference(shape)) == Lines(sorted));
        RC_ASSERT(OrderComplaint(shape, order) == "");
      },
      options));
}

// The models must be able to fail: a node that moves is always out of its place, and one that
// comes twice, is missing or overtakes its own chain has left the state machine.
TEST(ScheduleOrderPropertyTest, DisturbedOrdersAreSeen) {
  PropertyOptions options;
  options.evaluations = 300;
  EXPECT_TRUE(CheckProperty(
      "disturbed orders of issue are seen",
      [] {
        const OrderShape shape = *GenShape();
        std::vector<Key> order = OfChecks(shape);
        const auto i = *rc::gen::inRange<size_t>(0, order.size() - 1);
        std::vector<Key> swapped = order, missing = order, twice = order;
        std::swap(swapped[i], swapped[i + 1]);
        RC_ASSERT(PositionOf(shape, swapped[i]) > PositionOf(shape, swapped[i + 1]));
        const bool one_chain = order[i].microbatch == order[i + 1].microbatch &&
                               order[i].side != Side::kWeights &&
                               order[i + 1].side != Side::kWeights;
        if (one_chain) RC_ASSERT(OrderComplaint(shape, swapped) != "");
        missing.erase(missing.begin() + static_cast<int64_t>(i));
        RC_ASSERT(OrderComplaint(shape, missing) != "");
        twice.insert(twice.begin() + static_cast<int64_t>(i), order[i]);
        RC_ASSERT(OrderComplaint(shape, twice) != "");
      },
      options));
}

}  // namespace
}  // namespace shardproof
