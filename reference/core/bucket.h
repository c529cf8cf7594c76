// bucket.h: what of a bucket does this rank hold, and at which addresses?
//
//                    main weights, optimizer state    model weights     main gradients
//   no_shard         full                             full              full
//   optim            1 shard                          full              full
//   optim_grads      1 shard                          full              inner shard
//   ..._params       1 shard                          inner shard       inner shard
//   layer_wise       parameters that this rank owns   full              full
//
// A bucket of inner_size inner shards; without outer sharding a shard is an inner shard, with it
// one slice of it (requirement FS-31; Megatron-FSDP's buffer table). Under layer_wise a shard is
// what one rank owns, of any size, and an inner shard what a reduction leaves on a rank: all of a
// bucket of dealt parameters.
#pragma once
#include <optional>

#include "conformance/abi/spf.hpp"
#include "reference/core/layout.h"
#include "reference/core/units.h"
#include "reference/groups/collection.h"

namespace reference {

struct Bucket {
  BucketPlan plan;
  BucketLayout layout;
  DataParallelGroups groups;
  int32_t module = 0;  // for labels: the unit's module, or the root
  // Which of its unit's buckets it is, if the unit shares double buffers with others.
  std::optional<int32_t> double_buffer;
  // The same of its copy for backward, which shares buffers with such copies alone.
  std::optional<int32_t> backward_double_buffer;
  int32_t inner_rank = 0, inner_size = 1;
  int32_t shard = 0;               // which of layout.shards this rank owns
  bool full_weights = true;        // model weights are kept whole
  bool backward_copy = false;      // backward reads another copy of the model weights
  bool full_grads = true;          // main gradients are kept whole
  spf_dtype grad_dtype = SPF_F32;  // of main_grad

  spf_addr main = 0;                     // fp32, my shard
  spf_addr model = 0;                    // plan.dtype, full or my inner shard
  spf_addr main_grad = 0;                // grad_dtype, full or my inner shard; none if frozen
  spf_addr exp_avg = 0, exp_avg_sq = 0;  // AdamW's m and v: fp32, my shard; none if frozen
  spf_addr momentum = 0;                 // Muon's m: fp32, my shard; none if frozen

  // plan.dtype, full: while the unit is gathered, if model weights are sharded.
  spf_addr gathered = 0;
  // The copy that backward reads, if it has one of its own: as model and gathered.
  spf_addr backward_model = 0, backward_gathered = 0;
  // plan.dtype, 1 / part.size() of it: between the unit's forward and backward, if
  // reshard_after_forward says so.
  spf_addr part = 0;
  // fp32, full: this rank's gradient of the running backward, if it is not main_grad.
  spf_addr local_grad = 0;

  int64_t size() const { return layout.size; }
  int64_t shard_size() const { return layout.ShardSize(shard); }
  int64_t shard_begin() const { return layout.ShardBegin(shard); }
  int64_t grad_size() const { return full_grads ? size() : inner_shard_size(); }  // of main_grad
  int64_t inner_shard_size() const { return layout.size / inner_size; }
  int64_t inner_shard_begin() const { return inner_rank * inner_shard_size(); }

  uint64_t Bytes(int64_t elements, int32_t dtype) const {
    return Count(elements) * spf::SizeOf(dtype);
  }
  uint64_t FullBytes() const { return Bytes(size(), plan.dtype); }

  int64_t part_size() const { return layout.size / groups.part.size(); }
  uint64_t PartBytes() const { return Bytes(part_size(), plan.dtype); }

  // Full weights as nodes read them; 0 while they are not there.
  spf_addr Full(bool backward = false) const {
    if (full_weights) return model;
    return backward && backward_copy ? backward_gathered : gathered;
  }
  // My inner shard of the model weights: what an all-gather sends.
  spf_addr InnerShardOfModel(bool for_backward = false) const {
    if (for_backward) return backward_model;
    return full_weights ? model + Bytes(inner_shard_begin(), plan.dtype) : model;
  }
  // My shard of the model weights: what the optimizer installs.
  spf_addr ShardOfModel(bool for_backward = false) const {
    const int64_t held_from = full_weights ? 0 : inner_shard_begin();
    return (for_backward ? backward_model : model) + Bytes(shard_begin() - held_from, plan.dtype);
  }
  spf_addr InnerShardOfGrad() const {
    return full_grads ? main_grad + Bytes(inner_shard_begin(), grad_dtype) : main_grad;
  }
  // My shard of the reduced gradients: what the optimizer reads.
  spf_addr ShardOfGrad() const {
    const int64_t held_from = full_grads ? 0 : inner_shard_begin();
    return main_grad + Bytes(shard_begin() - held_from, grad_dtype);
  }
  // The parameters that lie in my shard.
  std::vector<BucketSlice> MySlices() const { return layout.Slices(shard_begin(), shard_size()); }
};

}  // namespace reference
