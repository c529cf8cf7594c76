#include "reference/plan/plan_operations.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "reference/plan/program.h"

namespace reference {
namespace {

const NodeList& NodesOf(const ScheduleNodes& nodes, const ScheduleNode& node) {
  static const NodeList none;
  switch (node.action) {
    case Action::kLossForward:
    case Action::kLossBackward:
      return nodes.loss;
    case Action::kPreProcess:
      return nodes.pre_process;
    case Action::kPostProcess:
      return nodes.post_process;
    case Action::kForward:
    case Action::kBackward:
    case Action::kWeightGrads:
      return At(nodes.layers, node.layer)[node.layer_node];
    default:
      return none;
  }
}

// Gathered parameters are there for compute only, and gradients are handed over behind it.
void CheckStream(const PlannedNode& planned) {
  if (!planned.on_a2a()) return;
  for (const Operation& operation : planned.operations) {
    for (const spf_use& use : UsesOf(operation)) {
      if (use.table != SPF_IN_PARAM && use.table != SPF_IN_GRAD) continue;
      throw std::logic_error(std::string(operation.node->name) + " uses a parameter in " +
                             Name(planned.node) + ", which runs on the a2a stream");
    }
  }
}

PlannedNode PlanNode(const spf_model& model, const ScheduleNodes& nodes,
                     const ScheduleSettings& settings, const ScheduleNode& schedule_node) {
  PlannedNode planned{schedule_node, {}};
  const auto add = [&](const spf_node* node, spf_phase phase, bool recompute = false) {
    if (node->uses[phase].n > 0) planned.operations.push_back({node, phase, recompute});
  };
  const NodeList& list = NodesOf(nodes, schedule_node);
  const bool weight_grads = schedule_node.action == Action::kWeightGrads;
  for (const spf_node* node : list) {
    // Runs again, right before the backward of the same node, what was not kept.
    const bool again = !weight_grads && node->uses[SPF_BWD].n > 0 && !settings.recomputed.empty() &&
                       At(settings.recomputed, node->module);
    if (!planned.backward() || again) add(node, SPF_FWD, planned.backward());
  }
  // Fc2 before fc1; shared expert, then attention, then what the MTP layer has before it.
  const bool delay = settings.delay_wgrad && schedule_node.action == Action::kBackward;
  for (auto node = list.rbegin(); planned.backward() && node != list.rend(); ++node) {
    const bool defers = DefersWeightGrads(model, **node);
    if (!weight_grads) add(*node, delay && defers ? SPF_DGRAD : SPF_BWD);
    if (weight_grads && defers) add(*node, SPF_WGRAD);
  }
  CheckStream(planned);
  return planned;
}

bool Touches(const Operation& operation, const ValueRef& value) {
  return std::ranges::any_of(UsesOf(operation), [&](const spf_use& use) {
    return use.id == value.value && use.table == (value.gradient ? SPF_IN_DACT : SPF_IN_ACT);
  });
}

// Whether an operation outside the chain, in a schedule node before this one, uses the value.
bool UsedOutsideChain(const std::vector<PlannedNode>& nodes, size_t before, const ValueRef& value) {
  const auto touches = [&](const Operation& o) { return Touches(o, value); };
  return std::ranges::any_of(std::span(nodes).first(before), [&](const PlannedNode& node) {
    return !node.chained() && std::ranges::any_of(node.operations, touches);
  });
}

}  // namespace

std::vector<PlannedNode> PlanOperations(const spf_model& model, const ScheduleNodes& nodes,
                                        const ScheduleSettings& settings) {
  const auto layers = Length(nodes.layers);
  std::vector<PlannedNode> planned;
  StepShape shape{layers, std::nullopt, settings.delay_wgrad, settings.early_release};
  for (const bool backward : {false, true}) {
    if (backward && settings.forward_only) break;
    if (backward) std::swap(shape.forward_layers, shape.backward_layers);
    for (const ScheduleNode& node : CombinedStepOrder(shape))
      planned.push_back(PlanNode(model, nodes, settings, node));
  }
  return planned;
}

std::vector<std::vector<ValueRef>> PlanDeaths(const std::vector<PlannedNode>& nodes,
                                              int32_t n_values) {
  std::vector<Operation> all;
  for (const PlannedNode& node : nodes)
    all.insert(all.end(), node.operations.begin(), node.operations.end());
  const std::vector<std::vector<ValueRef>> deaths = Deaths(all, n_values);
  std::vector<std::vector<ValueRef>> planned;
  std::vector<ValueRef> postponed;  // to the next operation on compute
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (size_t i = 0; i < nodes[n].operations.size(); ++i) {
      std::vector<ValueRef> here;
      if (!nodes[n].on_a2a()) here.swap(postponed);
      for (const ValueRef& dead : deaths[planned.size()]) {
        const bool later = nodes[n].on_a2a() && UsedOutsideChain(nodes, n, dead);
        (later ? postponed : here).push_back(dead);
      }
      planned.push_back(std::move(here));
    }
  }
  return planned;
}

}  // namespace reference
