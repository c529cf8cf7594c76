#include "reference/plan/writer.h"

#include <algorithm>

#include "reference/core/at.h"

namespace reference {

void PlanWriter::BeginStep() {
  Mark(SPF_HOOK_ZERO_GRAD);
  Add(Do::kZeroGrads);
  Mark(SPF_HOOK_START_PARAM_SYNC, 0, 0);
}

void PlanWriter::EndStep() {
  Mark(SPF_HOOK_FINISH_GRAD_SYNC);
  reducing.Finish();
  gathering.ReleaseAll();
  Add(Do::kUpdate);
}

void PlanWriter::Mark(spf_hook hook, int32_t module, int32_t microbatch) {
  Step& step = Add(Do::kMark, {microbatch, 0});
  step.hook = hook;
  step.module = module;
}

Step& PlanWriter::Add(Do what, ChunkPass of, bool on_a2a) {
  Step& step = plan.emplace_back(what);
  step.of = of;
  step.on_a2a = on_a2a;
  return step;
}

void PlanWriter::Open(ChunkPass of, bool chained) {
  Step& step = Add(Do::kOpen, of);
  step.program = At(facts.programs, of.microbatch);
  step.chained = chained;
}

Pass PlanWriter::Open(int32_t microbatch, bool training) {
  const Config& config = facts.config;
  const spf_program& program = *At(facts.programs, microbatch);
  Pass pass{{microbatch, 0}, EvalOperations(program), {}, 0};
  if (training)
    pass.operations = TrainOperations(
        program, PlanRecompute(facts.model, config.recompute, config.recompute_modules));
  const auto is_backward = [](const Operation& o) { return o.phase != SPF_FWD || o.recompute; };
  pass.backward = static_cast<size_t>(std::ranges::find_if(pass.operations, is_backward) -
                                      pass.operations.begin());
  pass.deaths = Deaths(pass.operations, facts.model.n_values);
  Open(pass.id);
  return pass;
}

Step& PlanWriter::Run(const Pass& pass, size_t operation, bool on_a2a) {
  Step& step = Add(Do::kRun, pass.id, on_a2a);
  step.operation = pass.operations[operation];
  step.dead = pass.deaths[operation];
  return step;
}

}  // namespace reference
