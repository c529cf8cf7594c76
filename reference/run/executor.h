// executor.h: who carries a plan out?
//
// Walks the list and does what each step says: nothing here decides what comes when (plan/). It
// knows how: streams, events and the waits that each kind of step needs (the table
// "Synchronisation" of reference/README.md).
#pragma once
#include <memory>

#include "reference/optim/grad_statistics.h"
#include "reference/optim/optimizer.h"
#include "reference/plan/step.h"
#include "reference/run/gathers.h"
#include "reference/run/operation_runner.h"
#include "reference/run/param_store.h"
#include "reference/run/pipeline_links.h"

namespace reference {

class Executor {
 public:
  // Makes the events and the stream that it needs.
  Executor(Context& context, ParamStore& store, Reductions& reductions, GradStatistics& statistics,
           Optimizer& optimizer);

  void Run(const Plan& plan);
  void Destroy();

 private:
  void Take(const Step& step);
  void Gather(const Step& step);
  void Open(const Step& step);
  void Close(ChunkPass of);
  void RunOperation(const Step& step);
  // Decides from the norm whether the step is left out.
  void Update();
  spf_stream StreamOf(const Step& step) const {
    return step.on_a2a ? c_.streams.a2a : c_.streams.compute;
  }

  Context& c_;
  ParamStore& store_;
  Reductions& reductions_;
  GradStatistics& statistics_;
  Optimizer& optimizer_;
  std::unique_ptr<Gathers> gathers_;
  OperationRunner runner_;
  std::unique_ptr<PipelineLinks> links_;  // in a pipeline
  Microbatches microbatches_;
};

}  // namespace reference
