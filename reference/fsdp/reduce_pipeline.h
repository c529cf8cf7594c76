// reduce_pipeline.h: how do local gradients become the reduced gradient of this rank's shard?
//
//                          accumulates      reduced, in which microbatch   result
//   no_shard               locally          all-reduce, last               full
//   optim                  locally          reduce-scatter, last           my shard of the full one
//   optim_grads(_params)   reduced shards   reduce-scatter, every one      inner shard
//
// HSDP then reduces the accumulated inner shard over the outer ranks, once per step: all-reduce, or
// with outer_strategy optim reduce-scatter to this rank's slice (FS-19; PR 4891).
//
// The scale is applied once, to the contribution that goes onto the wire, never to a running sum
// (FS-17; PR 3023).
//
// Synchronisation, per bucket group:
//   reduce waits for compute        the last gradient was added, the contribution was scaled
//   outer_reduce waits for reduce   the inner shard is accumulated
//   compute waits for the result    before it frees the contribution (at most one unit's is in
//                                   flight while another's is computed), and at the end of the step
//                                   before the optimizer reads the shards
#pragma once
#include <deque>
#include <vector>

#include "reference/fsdp/context.h"
#include "reference/fsdp/host_scalars.h"

namespace reference {

class ReducePipeline {
 public:
  explicit ReducePipeline(Context& context);

  void Create();
  // H12: clears what accumulates, once per step (FS-22).
  void ZeroGrad();
  // Before the first gradient of a unit's groups: storage for it, zeroed. Parameters that get no
  // gradient contribute zeros.
  void Begin(const std::vector<int32_t>& groups);
  // After the last one: hands the groups over. Reduces it, if this microbatch's gradients are to be
  // reduced now.
  void Accumulate(const std::vector<int32_t>& groups, bool last_microbatch);
  // Compute waits for everything that is being reduced.
  void Drain() { DrainBefore(turn_ + 1); }
  // H9: reduces what was left for the end of the step; afterwards compute may read the reduced
  // shards.
  void Finish();
  // Address of a parameter's gradient while its group's backward runs.
  spf_addr GradOf(int32_t param) const { return grad_[static_cast<size_t>(param)]; }
  void Destroy();

 private:
  struct InFlight {
    spf_event done = nullptr;
    std::vector<spf_addr> blocks;  // contributions, freed once reduced
    int64_t turn = 0;
  };
  // What of a bucket goes onto the wire: grad_comm_dtype, full size.
  struct Contribution {
    Bucket* bucket = nullptr;
    spf_addr data = 0;
    bool own_block = false;  // else it is the main gradient itself
  };
  bool HasLocalGrad() const {
    return c_.config.ShardsGrads() || c_.config.main_grads_dtype != SPF_F32;
  }
  CollectiveBuffers::Users SendersOfLocalGrad(const Bucket& bucket) const;
  std::vector<Bucket*> Trainable(int32_t group);
  void Reduce(int32_t group, bool last_microbatch);
  Contribution Contribute(Bucket& bucket);
  void CheckFinite(const Bucket& bucket, spf_addr data, int32_t dtype);
  double ScaleOf(const Bucket& bucket) const;
  void ReduceInner(const std::vector<Contribution>& contributions);
  void Keep(const Contribution& contribution);
  void ReduceOuter(const std::vector<Contribution>& contributions);
  void DrainBefore(int64_t turn);
  void WaitForOldest();

  Context& c_;
  std::vector<spf_addr> grad_;  // by parameter; 0 while there is none
  std::deque<InFlight> in_flight_;
  int64_t turn_ = 0;  // counts hand-overs: one unit's groups are one turn
  HostScalars nonfinite_{1};
};

}  // namespace reference
