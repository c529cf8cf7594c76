#include "reference/fsdp/driver.h"

#include <algorithm>

namespace reference {

Driver::Driver(Context& context, Hooks& hooks, GatherPipeline& gathers, OperationRunner& runner)
    : c_(context),
      hooks_(hooks),
      gathers_(gathers),
      runner_(runner),
      recompute_(PlanRecompute(c_.host.model(), c_.config.recompute, c_.config.recompute_modules)) {
}

void Driver::TrainMicrobatch(int64_t step, int32_t microbatch) {
  const spf_program& program = c_.host.Program(step, microbatch);
  Walk walk = StartWalk(program, TrainOperations(program, recompute_), microbatch, true);
  Forward(walk);
  Backward(walk);
}

void Driver::EvalMicrobatch(int64_t step, int32_t microbatch) {
  const spf_program& program = c_.host.Program(step, microbatch);
  Walk walk = StartWalk(program, EvalOperations(program), microbatch, false);
  Forward(walk);
}

Driver::Walk Driver::StartWalk(const spf_program& program, std::vector<Operation> operations,
                               int32_t microbatch, bool training) {
  std::vector<int32_t> left(static_cast<size_t>(c_.plan.units()));
  for (const Operation& operation : operations) {
    if (operation.phase == SPF_BWD && UnitOf(operation) != kNoUnit)
      ++left[static_cast<size_t>(UnitOf(operation))];
  }
  auto deaths = Deaths(operations, c_.host.model().n_values);
  return {microbatch,
          training,
          std::move(operations),
          std::move(deaths),
          Activations(c_.host, program, microbatch),
          0,
          -1,
          -1,
          kNoUnit,
          {},
          std::move(left)};
}

// ------------------------------------------------------------------ forward: modules in order

void Driver::Forward(Walk& walk) {
  hooks_.RootForward(walk.microbatch);
  while (walk.next < walk.operations.size()) {
    const Operation& operation = walk.operations[walk.next];
    if (operation.phase != SPF_FWD || operation.recompute) break;
    EnterForward(walk, *operation.node);
    Run(walk, operation);
  }
  CloseForward(walk);
  const auto places = static_cast<int32_t>(gathers_.stages().size());
  while (walk.position + 1 < places) VisitForward(walk, ++walk.position);
  CloseForward(walk);
}

// Visits every place of the order up to this node's, and leaves the window of its unit open.
void Driver::EnterForward(Walk& walk, const spf_node& node) {
  const int32_t unit = c_.plan.module_unit[static_cast<size_t>(node.module)];
  int32_t position = PositionOf(node);
  if (unit != walk.open) {
    CloseForward(walk);
    if (unit != kNoUnit) position = gathers_.NextOf(Pass::kForward, unit, walk.position);
  }
  while (walk.position < position) VisitForward(walk, ++walk.position);
  if (unit != walk.open) VisitForward(walk, position);  // again, and there is no place for that
}

// That of its module; a module whose nodes read the parameters of its children (a group of experts)
// comes with the last of them.
int32_t Driver::PositionOf(const spf_node& node) const {
  const spf_model& model = c_.host.model();
  int32_t position = gathers_.PositionOf(node.module);
  const spf_uses& uses = node.uses[SPF_FWD];
  for (int32_t i = 0; i < uses.n; ++i) {
    if (uses.use[i].table != SPF_IN_PARAM) continue;
    const int32_t owner = model.params[uses.use[i].id].module;
    int32_t above = owner;
    while (above > node.module) above = model.modules[above].parent;
    if (node.module > 0 && above == node.module)
      position = std::max(position, gathers_.PositionOf(owner));
  }
  return position;
}

void Driver::VisitForward(Walk& walk, int32_t position) {
  CloseForward(walk);
  hooks_.PreForward(position, walk.microbatch);
  walk.open = gathers_.stages()[static_cast<size_t>(position)].unit;
  if (walk.training && walk.open != kNoUnit && walk.registered.insert(walk.open).second)
    hooks_.RegisterBackward(walk.open, walk.microbatch);
}

void Driver::CloseForward(Walk& walk) {
  if (walk.open != kNoUnit) hooks_.PostForward(walk.open, walk.microbatch);
  walk.open = kNoUnit;
}

// ------------------------------------------------------------------ backward: units in reverse

void Driver::Backward(Walk& walk) {
  hooks_.RootPreBackward(walk.microbatch);
  while (walk.next < walk.operations.size()) {
    const Operation& operation = walk.operations[walk.next];
    const int32_t unit = UnitOf(operation);
    if (unit != walk.open) CloseBackward(walk);
    if (unit != kNoUnit) EnterBackward(walk, unit);
    Run(walk, operation);
    if (unit != kNoUnit && operation.phase == SPF_BWD)
      --walk.operations_left[static_cast<size_t>(unit)];
  }
  CloseBackward(walk);
  const auto places = static_cast<int32_t>(gathers_.backward_stages().size());
  while (walk.backward_position + 1 < places) VisitBackward(walk, ++walk.backward_position);
  CloseBackward(walk);
  hooks_.RootPostBackward(walk.microbatch);
}

void Driver::EnterBackward(Walk& walk, int32_t unit) {
  if (unit == walk.open) return;
  const int32_t position = gathers_.NextOf(Pass::kBackward, unit, walk.backward_position);
  while (walk.backward_position < position) VisitBackward(walk, ++walk.backward_position);
  if (unit != walk.open) VisitBackward(walk, position);  // again, and there is no place for that
}

void Driver::VisitBackward(Walk& walk, int32_t position) {
  CloseBackward(walk);
  const int32_t unit = gathers_.backward_stages()[static_cast<size_t>(position)].unit;
  if (!c_.plan.unit_in_backward[static_cast<size_t>(unit)]) return;
  hooks_.PreBackward(position, walk.microbatch);
  walk.open = unit;
}

// The parameters go at the end of every window; the gradients are complete at the end of the last.
void Driver::CloseBackward(Walk& walk) {
  if (walk.open == kNoUnit) return;
  hooks_.PostBackward(walk.open, walk.microbatch);
  if (walk.operations_left[static_cast<size_t>(walk.open)] == 0)
    hooks_.AccumulateUnit(walk.open, walk.microbatch);
  walk.open = kNoUnit;
}

// ------------------------------------------------------------------ one operation

void Driver::Run(Walk& walk, const Operation& operation) {
  runner_.Run(operation, walk.microbatch, walk.activations, c_.streams.compute);
  walk.activations.Free(walk.deaths[walk.next], c_.streams.compute);
  ++walk.next;
}

}  // namespace reference
