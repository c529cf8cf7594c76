#include "reference/layerwise/layer_training.h"

namespace reference {

LayerTraining::LayerTraining(Context& context, ParamStore& store, ReducePipeline& reductions)
    : c_(context),
      store_(store),
      reductions_(reductions),
      gathers_(context),
      runner_(context, gathers_, reductions),
      recompute_(PlanRecompute(c_.host.model(), c_.config.recompute, c_.config.recompute_modules)) {
}

void LayerTraining::BeginStep() {
  c_.host.Mark(SPF_HOOK_ZERO_GRAD, 0, -1);
  reductions_.ZeroGrad();
  c_.host.Mark(SPF_HOOK_START_PARAM_SYNC, 0, 0);
}

void LayerTraining::TrainMicrobatches(int64_t step) {
  for (int32_t m = 0; m < c_.config.microbatches; ++m) {
    const spf_program& program = c_.host.Program(step, m);
    Walk walk = StartWalk(program, TrainOperations(program, recompute_), m);
    Forward(walk);
    // A gather may use the storage of gradients, and a module that this rank's program leaves out
    // is needed by others' collectives.
    gathers_.PublishAll();
    Backward(walk);
  }
}

void LayerTraining::EvalMicrobatches(int64_t step) {
  c_.host.Mark(SPF_HOOK_START_PARAM_SYNC, 0, 0);
  for (int32_t m = 0; m < c_.config.microbatches; ++m) {
    const spf_program& program = c_.host.Program(step, m);
    Walk walk = StartWalk(program, EvalOperations(program), m);
    Forward(walk);
  }
  gathers_.PublishAll();
}

LayerTraining::Walk LayerTraining::StartWalk(const spf_program& program,
                                             std::vector<Operation> operations,
                                             int32_t microbatch) {
  auto deaths = Deaths(operations, c_.host.model().n_values);
  return {microbatch, std::move(operations), std::move(deaths),
          Activations(c_.host, program, microbatch)};
}

void LayerTraining::Forward(Walk& walk) {
  c_.host.Mark(SPF_HOOK_FORWARD, 0, walk.microbatch);
  while (walk.next < walk.operations.size()) {
    const Operation& operation = walk.operations[walk.next];
    if (operation.phase != SPF_FWD || operation.recompute) break;
    Run(walk);
  }
}

void LayerTraining::Backward(Walk& walk) {
  c_.host.Mark(SPF_HOOK_ROOT_PRE_BACKWARD, 0, walk.microbatch);
  reductions_.Begin(c_.plan.root_groups);
  std::vector<int32_t> to_come = GradientsToCome(walk);
  size_t done = 0;  // buckets whose gradients were handed over: in one order on all ranks
  const auto hand_over = [&] {
    for (; done < to_come.size() && to_come[done] == 0; ++done)
      reductions_.Accumulate({static_cast<int32_t>(done)}, IsLast(walk.microbatch));
  };
  while (walk.next < walk.operations.size()) {
    const Operation& operation = walk.operations[walk.next];
    for (int32_t i = 0; i < operation.uses().n; ++i) {
      const spf_use& use = operation.uses().use[i];
      if (use.table == SPF_IN_GRAD)
        --to_come[static_cast<size_t>(c_.plan.param_bucket[static_cast<size_t>(use.id)])];
    }
    Run(walk);
    hand_over();
  }
  hand_over();
  c_.host.Mark(SPF_HOOK_ROOT_POST_BACKWARD, 0, walk.microbatch);
}

std::vector<int32_t> LayerTraining::GradientsToCome(const Walk& walk) const {
  std::vector<int32_t> to_come(c_.buckets.size());
  for (size_t i = walk.next; i < walk.operations.size(); ++i) {
    const spf_uses& uses = walk.operations[i].uses();
    for (int32_t k = 0; k < uses.n; ++k) {
      if (uses.use[k].table == SPF_IN_GRAD)
        ++to_come[static_cast<size_t>(c_.plan.param_bucket[static_cast<size_t>(uses.use[k].id)])];
    }
  }
  return to_come;
}

void LayerTraining::Run(Walk& walk) {
  runner_.Run(walk.operations[walk.next], walk.microbatch, walk.activations, c_.streams.compute);
  walk.activations.Free(walk.deaths[walk.next], c_.streams.compute);
  ++walk.next;
}

void LayerTraining::FinishGradSync() {
  c_.host.Mark(SPF_HOOK_FINISH_GRAD_SYNC, 0, -1);
  reductions_.Finish();
}

void LayerTraining::InstallWeights() {
  c_.host.Mark(SPF_HOOK_INSTALL_WEIGHTS, 0, -1);
  store_.Install();
  gathers_.Rearm();
  if (!c_.config.overlap_param_gather) gathers_.PublishAll();
}

}  // namespace reference
