#include "reference/plan/plan_operations.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "reference/plan/program.h"

namespace reference {
namespace {

void AddForward(const NodeList& nodes, std::vector<Operation>& out) {
  for (const spf_node* node : nodes) {
    if (node->uses[SPF_FWD].n > 0) out.push_back({node, SPF_FWD, false});
  }
}

// Runs forward again, right before the backward of the same part, what was not kept.
void AddRecompute(const NodeList& nodes, const ScheduleSettings& settings,
                  std::vector<Operation>& out) {
  if (settings.recomputed.empty()) return;
  for (const spf_node* node : nodes) {
    if (node->uses[SPF_BWD].n > 0 && settings.recomputed[static_cast<size_t>(node->module)])
      out.push_back({node, SPF_FWD, true});
  }
}

void AddBackward(const spf_model& model, const NodeList& nodes, bool delay,
                 std::vector<Operation>& out) {
  for (size_t i = nodes.size(); i-- > 0;) {
    const bool later = delay && DefersWeightGrads(model, *nodes[i]);
    const spf_phase phase = later ? SPF_DGRAD : SPF_BWD;
    if (nodes[i]->uses[phase].n > 0) out.push_back({nodes[i], phase, false});
  }
}

// In the order of backward: fc2 before fc1; shared expert, then attention, then what the MTP layer
// has before its attention.
void AddWeightGrads(const spf_model& model, const NodeList& nodes, std::vector<Operation>& out) {
  for (size_t i = nodes.size(); i-- > 0;) {
    if (DefersWeightGrads(model, *nodes[i])) out.push_back({nodes[i], SPF_WGRAD, false});
  }
}

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
      return nodes.layers[static_cast<size_t>(turn.layer)][turn.part];
    default:
      return none;
  }
}

// Gathered parameters are there for compute only, and gradients are handed over behind it.
void CheckStream(const PlannedTurn& turn) {
  if (!turn.on_a2a()) return;
  for (const Operation& operation : turn.operations) {
    const spf_uses& uses = operation.uses();
    for (int32_t i = 0; i < uses.n; ++i) {
      if (uses.use[i].table != SPF_IN_PARAM && uses.use[i].table != SPF_IN_GRAD) continue;
      throw std::logic_error(std::string(operation.node->name) + " uses a parameter in " +
                             Name(turn.turn) + ", which runs on the a2a stream");
    }
  }
}

PlannedTurn PlanTurn(const spf_model& model, const ScheduleNodes& nodes,
                     const ScheduleSettings& settings, const Turn& turn) {
  PlannedTurn planned{turn, {}};
  const NodeList& of_turn = NodesOf(nodes, turn);
  if (turn.action == Action::kWeightGrads) {
    AddWeightGrads(model, of_turn, planned.operations);
  } else if (turn.side == Side::kForward) {
    AddForward(of_turn, planned.operations);
  } else {
    AddRecompute(of_turn, settings, planned.operations);
    const bool delay = settings.delay_wgrad && turn.action == Action::kBackward;
    AddBackward(model, of_turn, delay, planned.operations);
  }
  CheckStream(planned);
  return planned;
}

bool Touches(const Operation& operation, const ValueRef& value) {
  const spf_uses& uses = operation.uses();
  return std::any_of(uses.use, uses.use + uses.n, [&](const spf_use& use) {
    return use.id == value.value && use.table == (value.gradient ? SPF_IN_DACT : SPF_IN_ACT);
  });
}

// Whether an operation outside the chain, in a turn before this one, uses the value.
bool UsedOutsideChain(const std::vector<PlannedTurn>& turns, size_t before, const ValueRef& value) {
  return std::any_of(
      turns.begin(), turns.begin() + static_cast<ptrdiff_t>(before), [&](const PlannedTurn& t) {
        return !t.chained() && std::any_of(t.operations.begin(), t.operations.end(),
                                           [&](const Operation& o) { return Touches(o, value); });
      });
}

}  // namespace

std::vector<PlannedTurn> PlanOperations(const spf_model& model, const ScheduleNodes& nodes,
                                        const ScheduleSettings& settings) {
  const auto layers = static_cast<int32_t>(nodes.layers.size());
  std::vector<PlannedTurn> planned;
  StepShape forward{layers, std::nullopt, settings.delay_wgrad, settings.early_release};
  StepShape backward = forward;
  std::swap(backward.forward_layers, backward.backward_layers);
  std::vector<StepShape> passes{forward};
  if (!settings.forward_only) passes.push_back(backward);
  for (const StepShape& shape : passes) {
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
