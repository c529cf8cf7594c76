#include "reference/plan/issue_order.h"

#include <algorithm>

namespace reference {
namespace {

class OrderBuilder {
 public:
  explicit OrderBuilder(const StepShape& shape) : shape_(shape) {}

  std::vector<ScheduleNode> Build() {
    const bool f = shape_.forward_layers.has_value(), b = shape_.backward_layers.has_value();
    if (b) Add(Action::kRootPreBackward, Side::kBackward);
    if (b) Add(Action::kLossBackward, Side::kBackward);
    if (f) Add(Action::kJoinStart, Side::kForward);
    if (f) Add(Action::kPreProcess, Side::kForward);
    if (b) Add(Action::kJoinStart, Side::kBackward);
    if (b) Add(Action::kPostProcess, Side::kBackward);
    Pairs();
    if (shape_.transfer) Add(Action::kTransfer, b ? Side::kBackward : Side::kForward);
    if (b && shape_.delay_wgrad && *shape_.backward_layers > 0)
      Backward(Action::kWeightGrads, LayerNode::kPreDispatch, 0);
    if (f) Add(Action::kPostProcess, Side::kForward);
    if (b) Add(Action::kPreProcess, Side::kBackward);
    if (f) Add(Action::kJoinEnd, Side::kForward);
    if (b) Add(Action::kJoinEnd, Side::kBackward);
    if (f) Add(Action::kLossForward, Side::kForward);
    if (b) Add(Action::kRootPostBackward, Side::kBackward);
    return std::move(order_);
  }

 private:
  // f's first layer with b's last one, and so on; then whoever has layers left, alone.
  void Pairs() {
    const int32_t f_layers = shape_.forward_layers.value_or(0);
    const int32_t b_layers = shape_.backward_layers.value_or(0);
    const int32_t pairs = std::min(f_layers, b_layers);
    for (int32_t k = 0; k < pairs; ++k) Pair(k, b_layers - 1 - k);
    for (int32_t k = pairs; k < b_layers; ++k) Pair(kNone, b_layers - 1 - k);
    for (int32_t k = pairs; k < f_layers; ++k) Pair(k, kNone);
  }

  // The numbers are those of the header.
  void Pair(int32_t i, int32_t j) {
    using enum LayerNode;
    Backward(Action::kBackward, kMtpPostProcess, j);                                    // 1
    Backward(Action::kBackward, kCombine, j);                                           // 2
    Forward(kPreDispatch, i);                                                           // 3
    Backward(Action::kBackward, kMlp, j);                                               // 4
    Forward(kDispatch, i);                                                              // 5
    if (shape_.delay_wgrad) Backward(Action::kWeightGrads, kMlp, j);                    // 6
    Backward(Action::kBackward, kDispatch, j);                                          // 7
    if (shape_.early_release) Backward(Action::kBackward, kPreDispatch, j);             // 7'
    Forward(kMlp, i);                                                                   // 8
    Forward(kCombine, i);                                                               // 9
    if (!shape_.early_release) Backward(Action::kBackward, kPreDispatch, j);            // 10
    Forward(kMtpPostProcess, i);                                                        // 11
    if (shape_.delay_wgrad && j != 0) Backward(Action::kWeightGrads, kPreDispatch, j);  // 12
  }

  void Add(Action action, Side side) { order_.push_back({action, side}); }
  void Forward(LayerNode node, int32_t layer) {
    if (layer != kNone) order_.push_back({Action::kForward, Side::kForward, layer, node});
  }
  void Backward(Action action, LayerNode node, int32_t layer) {
    if (layer != kNone) order_.push_back({action, Side::kBackward, layer, node});
  }

  static constexpr int32_t kNone = -1;
  const StepShape& shape_;
  std::vector<ScheduleNode> order_;
};

}  // namespace

std::vector<ScheduleNode> CombinedStepOrder(const StepShape& shape) {
  return OrderBuilder(shape).Build();
}

std::vector<StepSides> StepsWithoutPipelining(int32_t microbatches) {
  std::vector<StepSides> steps{{0, std::nullopt}};
  for (int32_t k = 1; k < microbatches; ++k) steps.push_back({k, k - 1});
  steps.push_back({std::nullopt, microbatches - 1});
  return steps;
}

const char* NodeName(const ScheduleNode& node) {
  static constexpr const char* kNames[] = {"pre_dispatch", "dispatch", "mlp", "combine",
                                           "mtp_post_process"};
  switch (node.action) {
    case Action::kRootPreBackward:
      return "root_pre_backward";
    case Action::kLossBackward:
    case Action::kLossForward:
      return "loss";
    case Action::kTransfer:
      return "transfer";
    case Action::kJoinStart:
      return "start";
    case Action::kPreProcess:
      return "pre_process";
    case Action::kPostProcess:
      return "post_process";
    case Action::kJoinEnd:
      return "end";
    case Action::kRootPostBackward:
      return "root_post_backward";
    case Action::kWeightGrads:
    case Action::kForward:
    case Action::kBackward:
      break;
  }
  return At(kNames, node.layer_node);
}

std::string Name(const ScheduleNode& node) {
  const std::string layer = node.layer < 0 ? "" : std::to_string(node.layer) + ".";
  std::string name = (node.side == Side::kForward ? "f." : "b.") + layer + NodeName(node);
  if (node.action == Action::kForward) name += ".forward";
  if (node.action == Action::kBackward) name += ".backward";
  if (node.action == Action::kWeightGrads) name += ".weight_grads";
  return name;
}

}  // namespace reference
