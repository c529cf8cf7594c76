#include "reference/plan/plan_operations.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "reference/plan/program.h"

namespace reference {
namespace {

const NodeList& NodesOf(const ScheduleNodes& nodes, const Turn& turn) {
  static const NodeList none;
  switch (turn.action) {
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
      return At(nodes.layers, turn.layer)[turn.part];
    default:
      return none;
  }
}

// Gathered parameters are there for compute only, and gradients are handed over behind it.
void CheckStream(const PlannedTurn& turn) {
  if (!turn.on_a2a()) return;
  for (const Operation& operation : turn.operations) {
    for (const spf_use& use : UsesOf(operation)) {
      if (use.table != SPF_IN_PARAM && use.table != SPF_IN_GRAD) continue;
      throw std::logic_error(std::string(operation.node->name) + " uses a parameter in " +
                             Name(turn.turn) + ", which runs on the a2a stream");
    }
  }
}

PlannedTurn PlanTurn(const spf_model& model, const ScheduleNodes& nodes,
                     const ScheduleSettings& settings, const Turn& turn) {
  PlannedTurn planned{turn, {}};
  const auto add = [&](const spf_node* node, spf_phase phase, bool recompute = false) {
    if (node->uses[phase].n > 0) planned.operations.push_back({node, phase, recompute});
  };
  const NodeList& of_turn = NodesOf(nodes, turn);
  const bool weight_grads = turn.action == Action::kWeightGrads;
  for (const spf_node* node : of_turn) {
    // Runs again, right before the backward of the same part, what was not kept.
    const bool again = !weight_grads && node->uses[SPF_BWD].n > 0 && !settings.recomputed.empty() &&
                       At(settings.recomputed, node->module);
    if (!planned.backward() || again) add(node, SPF_FWD, planned.backward());
  }
  // Fc2 before fc1; shared expert, then attention, then what the MTP layer has before it.
  const bool delay = settings.delay_wgrad && turn.action == Action::kBackward;
  for (auto node = of_turn.rbegin(); planned.backward() && node != of_turn.rend(); ++node) {
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

// Whether an operation outside the chain, in a turn before this one, uses the value.
bool UsedOutsideChain(const std::vector<PlannedTurn>& turns, size_t before, const ValueRef& value) {
  const auto touches = [&](const Operation& o) { return Touches(o, value); };
  return std::ranges::any_of(std::span(turns).first(before), [&](const PlannedTurn& t) {
    return !t.chained() && std::ranges::any_of(t.operations, touches);
  });
}

}  // namespace

std::vector<PlannedTurn> PlanOperations(const spf_model& model, const ScheduleNodes& nodes,
                                        const ScheduleSettings& settings) {
  const auto layers = Length(nodes.layers);
  std::vector<PlannedTurn> planned;
  StepShape shape{layers, std::nullopt, settings.delay_wgrad, settings.early_release};
  for (const bool backward : {false, true}) {
    if (backward && settings.forward_only) break;
    if (backward) std::swap(shape.forward_layers, shape.backward_layers);
    for (const Turn& turn : CombinedStepOrder(shape))
      planned.push_back(PlanTurn(model, nodes, settings, turn));
  }
  return planned;
}

std::vector<std::vector<ValueRef>> PlanDeaths(const std::vector<PlannedTurn>& turns,
                                              int32_t n_values) {
  std::vector<Operation> all;
  for (const PlannedTurn& turn : turns)
    all.insert(all.end(), turn.operations.begin(), turn.operations.end());
  const std::vector<std::vector<ValueRef>> deaths = Deaths(all, n_values);
  std::vector<std::vector<ValueRef>> planned;
  std::vector<ValueRef> postponed;  // to the next operation on compute
  for (size_t t = 0; t < turns.size(); ++t) {
    for (size_t i = 0; i < turns[t].operations.size(); ++i) {
      std::vector<ValueRef> here;
      if (!turns[t].on_a2a()) here.swap(postponed);
      for (const ValueRef& dead : deaths[planned.size()]) {
        const bool later = turns[t].on_a2a() && UsedOutsideChain(turns, t, dead);
        (later ? postponed : here).push_back(dead);
      }
      planned.push_back(std::move(here));
    }
  }
  return planned;
}

}  // namespace reference
