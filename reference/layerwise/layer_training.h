// layer_training.h: what happens in a step where each rank steps whole parameters?
//
//   zero gradients
//   forward, first microbatch       with overlap, buckets are published as modules need them, and
//                                   all of them before the first gradient is added
//   backward, other microbatches    gradients are added; in the last backward a bucket is reduced
//                                   when its last gradient was added, in the order of buckets
//   norm, clip, update              of owned parameters
//   install                         owners' values become model weights; without overlap they are
//                                   gathered here
//
// Gathers are armed where weights are installed, at the end of a step (a skipped one too, so that
// ranks need not know) and after a load, and nowhere else: eval, further microbatches and recompute
// find the values published.
#pragma once
#include "reference/fsdp/operation_runner.h"
#include "reference/fsdp/param_store.h"
#include "reference/fsdp/training.h"
#include "reference/layerwise/layer_gathers.h"

namespace reference {

class LayerTraining : public Training {
 public:
  LayerTraining(Context& context, ParamStore& store, ReducePipeline& reductions);

  void InstallInitialWeights() override { store_.InstallInitialEverywhere(); }
  void BeginStep() override;
  void TrainMicrobatches(int64_t step) override;
  void FinishGradSync() override;
  void InstallWeights() override;
  void EvalMicrobatches(int64_t step) override;
  void Drain() override { gathers_.Drain(); }
  void GiveUpOldWeights() override { gathers_.GiveUp(); }
  void Destroy() override { gathers_.Destroy(); }

 private:
  // One microbatch.
  struct Walk {
    int32_t microbatch = 0;
    std::vector<Operation> operations;
    std::vector<std::vector<ValueRef>> deaths;
    Activations activations;
    size_t next = 0;  // operation
  };
  Walk StartWalk(const spf_program& program, std::vector<Operation> operations, int32_t microbatch);
  void Forward(Walk& walk);
  void Backward(Walk& walk);
  void Run(Walk& walk);
  // By bucket: backward operations from walk.next on that add to its gradients.
  std::vector<int32_t> GradientsToCome(const Walk& walk) const;
  bool IsLast(int32_t microbatch) const { return microbatch == c_.config.microbatches - 1; }

  Context& c_;
  ParamStore& store_;
  ReducePipeline& reductions_;
  LayerGathers gathers_;
  OperationRunner runner_;
  Recompute recompute_;
};

}  // namespace reference
