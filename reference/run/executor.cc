#include "reference/run/executor.h"

#include "reference/run/layer_gathers.h"
#include "reference/run/unit_gathers.h"

namespace reference {

Executor::Executor(Context& context, ParamStore& store, Reductions& reductions,
                   GradStatistics& statistics, Optimizer& optimizer)
    : c_(context),
      store_(store),
      reductions_(reductions),
      statistics_(statistics),
      optimizer_(optimizer),
      runner_(context, reductions) {
  if (c_.config.LayerWise()) {
    gathers_ = std::make_unique<LayerGathers>(context);
  } else {
    gathers_ = std::make_unique<UnitGathers>(context);
  }
  if (c_.config.schedule == CommSchedule::kOneCommunicator) c_.host.KeepOneInFlight();
  if (c_.groups.pp.size() > 1) links_ = std::make_unique<PipelineLinks>(context);
}

void Executor::Run(const Plan& plan) {
  for (const Step& step : plan) Take(step);
}

void Executor::Take(const Step& step) {
  switch (step.what) {
    case Do::kMark:
      return c_.host.Mark(step.hook, step.module, step.of.microbatch);
    case Do::kZeroGrads:
      return reductions_.ZeroGrad();
    case Do::kUpdate:
      return Update();
    case Do::kInstall:
      return store_.Install();
    case Do::kGather:
      return Gather(step);
    case Do::kNeed:
      return gathers_->Wait(step.group);
    case Do::kRelease:
      return gathers_->Release(step.group);
    case Do::kReshard:
      return gathers_->Reshard(step.group);
    case Do::kBegin:
      return reductions_.Begin(step.group);
    case Do::kFold:
      return reductions_.Fold(step.group);
    case Do::kReduce:
      return reductions_.Reduce(step.group, step.last);
    case Do::kReduced:
      return reductions_.WaitForOldest();
    case Do::kOpen:
      return Open(step);
    case Do::kRun:
      return RunOperation(step);
    case Do::kChainWait:
      return c_.host.Wait(StreamOf(step), microbatches_.At(step.of).chain);
    case Do::kChainRecord:
      return c_.host.Record(microbatches_.At(step.of).chain, StreamOf(step));
    case Do::kClose:
      return Close(step.of);
    case Do::kArrive:
      return links_->Arrive();
    case Do::kTransfer:
      return links_->Transfer(step.messages, microbatches_);
  }
}

void Executor::Gather(const Step& step) {
  if (step.parts) return gathers_->LaunchParts(step.group);
  gathers_->Launch(step.group, step.first);
}

void Executor::Open(const Step& step) {
  Microbatch& opened =
      microbatches_.Open(step.of, Activations(c_.host, *step.program, step.of.microbatch));
  if (step.chained) opened.chain = c_.host.Event();
}

void Executor::RunOperation(const Step& step) {
  Activations& values = microbatches_.At(step.of).values;
  runner_.Run(step.operation, step.of.microbatch, values, StreamOf(step));
  runner_.PublishLoss(step.dead, step.of.microbatch, values, StreamOf(step));
  values.Free(step.dead, StreamOf(step));
}

void Executor::Close(ChunkPass of) {
  const spf_event chain = microbatches_.At(of).chain;
  if (chain != nullptr) spf::Check(c_.host.DestroyEvent(chain));
  microbatches_.Close(of);
}

void Executor::Update() {
  reductions_.SumOverTp();
  store_.PublishGrads();
  const GradFacts grads = statistics_.Measure();
  statistics_.Publish(grads);
  c_.host.Mark(SPF_HOOK_OPTIMIZER_STEP, 0, -1);
  if (SkipsStep(c_.config, grads.norm)) return;  // no weight changes: nothing to publish (GE-33)
  optimizer_.Step(ClipScale(c_.config, grads.norm));
  store_.PublishParams();
}

void Executor::Destroy() {
  gathers_->Destroy();
  if (links_) links_->Destroy();
  c_.host.EndChain();
}

}  // namespace reference
