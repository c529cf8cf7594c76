// training.h: who brings parameters, walks microbatches and hands gradients over?
//
// What an engine does per step is the same whatever is sharded; how weights reach the nodes that
// read them, and when gradients leave, is not.
#pragma once
#include <cstdint>

namespace reference {

class Training {
 public:
  virtual ~Training() = default;

  // After create: the model weights that nodes read are this rank's initial values, or come later.
  virtual void InstallInitialWeights() = 0;
  virtual void BeginStep() = 0;  // H12, H11: gradients are zero, gathers may start
  // Forward and backward of all microbatches; publishes LOSS.
  virtual void TrainMicrobatches(int64_t step) = 0;
  virtual void FinishGradSync() = 0;  // H9
  virtual void InstallWeights() = 0;  // H10: after the optimizer, and after a load
  // Forward only; publishes LOSS. Leaves nothing behind.
  virtual void EvalMicrobatches(int64_t step) = 0;
  // Before a save or a load: nothing travels afterwards.
  virtual void Drain() {}
  // A load has replaced the weights: what was still to be gathered of the old ones is not.
  virtual void GiveUpOldWeights() {}
  virtual void Destroy() = 0;
};

}  // namespace reference
