// reductions.h: how do local gradients become the reduced gradient of this rank's shard?
//
//                          reduced by       result
//   no_shard, layer_wise   all-reduce       full
//   optim                  reduce-scatter   my shard of the full one
//   optim_grads(_params)   reduce-scatter   added to the inner shard
//
// plan/reducing.h says when. HSDP then reduces the accumulated inner shard over the outer ranks,
// once per step: all-reduce, or with outer_strategy optim reduce-scatter to this rank's slice
// (FS-19; NVIDIA/Megatron-LM#4891).
//
// The scale is applied once, to the contribution that goes onto the wire, never to a running sum
// (FS-17; NVIDIA/Megatron-LM#3023).
#pragma once
#include <deque>
#include <vector>

#include "reference/core/context.h"
#include "reference/core/host_scalars.h"

namespace reference {

class Reductions {
 public:
  explicit Reductions(Context& context);

  void Create();
  // H12: clears what accumulates, once per step (FS-22).
  void ZeroGrad();
  // Storage for a bucket group's gradient of the running backward, zeroed.
  void Begin(int32_t group);
  // Adds it to the main gradient, where it is not that.
  void Fold(int32_t group);
  // Hands the bucket group over: scaled, cast, reduced. last: over outer ranks too.
  void Reduce(int32_t group, bool last);
  // Compute waits for the oldest reduction under way, and frees what it sent.
  void WaitForOldest();
  // Adds up what nodes have made of other parts of the sequence (sequence_parallel): once per step,
  // behind all reductions.
  void SumOverTp();
  // Address of a parameter's gradient while its bucket group's backward runs.
  spf_addr GradOf(int32_t param) const { return At(grad_, param); }
  void Destroy();

 private:
  struct InFlight {
    spf_event done = nullptr;
    std::vector<spf_addr> blocks;  // contributions, freed once reduced
  };
  // What of a bucket goes onto the wire: grad_comm_dtype, full size.
  struct Contribution {
    Bucket* bucket = nullptr;
    spf_addr data = 0;
    bool own_block = false;  // else it is the main gradient itself
  };
  CollectiveBuffers::Users SendersOfLocalGrad(const Bucket& bucket) const;
  std::vector<Bucket*> Trainable(int32_t group);
  Contribution Contribute(Bucket& bucket);
  void CheckFinite(const Bucket& bucket, spf_addr data, int32_t dtype);
  double ScaleOf(const Bucket& bucket) const;
  void ReduceInner(const std::vector<Contribution>& contributions);
  void Keep(const Contribution& contribution);
  void ReduceOuter(const std::vector<Contribution>& contributions);

  Context& c_;
  std::vector<spf_addr> grad_;  // by parameter; 0 while there is none
  std::deque<InFlight> in_flight_;
  HostScalars nonfinite_{1};
};

}  // namespace reference
