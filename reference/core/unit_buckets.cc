#include "reference/core/unit_buckets.h"

namespace reference {

std::vector<Bucket> MakeBuckets(const Config& config, const EngineGroups& groups,
                                const ModelPlan& plan) {
  std::vector<Bucket> buckets;
  std::vector<int32_t> of_unit(plan.unit_modules.size());  // buckets so far
  for (const BucketPlan& planned : plan.buckets) {
    Bucket& bucket = buckets.emplace_back();
    bucket.plan = planned;
    bucket.groups = planned.expert ? *groups.expert : groups.dense;
    bucket.module = planned.unit == kNoUnit ? 0 : At(plan.unit_modules, planned.unit);
    if (config.HasDoubleBuffers() && planned.unit != kNoUnit && At(plan.unit_alike, planned.unit))
      bucket.double_buffer = At(of_unit, planned.unit)++;
    bucket.full_weights = !config.ShardsParams();
    bucket.backward_copy = config.backward_copies && planned.unit != kNoUnit;
    if (bucket.double_buffer) bucket.backward_double_buffer = -1 - *bucket.double_buffer;
    bucket.full_grads = !config.ShardsGrads();
    bucket.grad_dtype = config.main_grads_dtype;
    int32_t shards = 1;
    if (config.strategy != ShardingStrategy::kNoShard) {
      bucket.inner_rank = bucket.groups.reduce.rank;
      bucket.inner_size = bucket.groups.reduce.size();
      shards = bucket.inner_size;
      bucket.shard = bucket.inner_rank;
      if (config.outer_shards) {
        const Communicator& outer = bucket.groups.outer;
        shards *= outer.size();
        bucket.shard = LogicalShard(bucket.inner_rank, outer.rank, outer.size());
      }
    }
    bucket.layout = LayOut(planned.params, shards);
  }
  return buckets;
}

}  // namespace reference
