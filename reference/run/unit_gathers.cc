#include "reference/run/unit_gathers.h"

#include "reference/core/at.h"
#include "reference/core/collectives.h"

namespace reference {

UnitGathers::UnitGathers(Context& context) : c_(context) {
  for (size_t g = 0; g < c_.plan.groups.size(); ++g) done_.push_back(c_.host.Event());
}

void UnitGathers::Launch(int32_t group, bool first) {
  const BucketGroup& buckets = c_.GroupOf(group);
  Allocate(buckets);
  if (c_.config.outer_shards && first) {
    LaunchOuter(buckets);
    c_.host.After(c_.streams.gather, c_.streams.outer_gather);
  } else {
    c_.host.After(c_.streams.gather, c_.streams.compute);
  }
  CollectiveBatch batch(c_.host, c_.bucket(buckets.buckets[0]).groups.gather, c_.streams.gather);
  for (int32_t id : buckets.buckets) {
    const Bucket& b = c_.bucket(id);
    const bool copy = buckets.for_backward;
    batch.AllGather(b.plan.dtype, b.InnerShardOfModel(copy), b.Full(copy), b.inner_shard_size(),
                    spf::For(SPF_FOR_PARAM_FULL, b.module));
  }
  batch.Issue();
  c_.host.Record(At(done_, group), c_.streams.gather);
}

void UnitGathers::LaunchParts(int32_t group) {
  const BucketGroup& buckets = c_.GroupOf(group);
  Allocate(buckets);
  c_.host.After(c_.streams.gather, c_.streams.compute);
  CollectiveBatch batch(c_.host, c_.bucket(buckets.buckets[0]).groups.part, c_.streams.gather);
  for (int32_t id : buckets.buckets) {
    const Bucket& b = c_.bucket(id);
    batch.AllGather(b.plan.dtype, b.part, b.Full(), b.part_size(),
                    spf::For(SPF_FOR_PARAM_FULL, b.module));
  }
  batch.Issue();
  c_.host.Record(At(done_, group), c_.streams.gather);
}

void UnitGathers::Allocate(const BucketGroup& group) {
  for (int32_t id : group.buckets) {
    Bucket& b = c_.bucket(id);
    if (b.full_weights) continue;
    CollectiveBuffers::Users users{&b.groups.gather};
    if (b.groups.part && group.unit != kNoUnit) users.push_back(&b.groups.part);
    const bool copy = group.for_backward;
    (copy ? b.backward_gathered : b.gathered) = c_.buffers.Take(
        c_.streams.compute, b.FullBytes(), users, spf::For(SPF_FOR_PARAM_FULL, b.module),
        copy ? b.backward_double_buffer : b.double_buffer);
  }
}

// Each outer rank has installed its slice of the inner shard: collect the others' slices, in place.
void UnitGathers::LaunchOuter(const BucketGroup& group) {
  c_.host.After(c_.streams.outer_gather, c_.streams.compute);
  CollectiveBatch batch(c_.host, c_.bucket(group.buckets[0]).groups.outer, c_.streams.outer_gather);
  for (int32_t id : group.buckets) {
    const Bucket& b = c_.bucket(id);
    const bool copy = group.for_backward;
    batch.AllGather(b.plan.dtype, b.ShardOfModel(copy), copy ? b.backward_model : b.model,
                    b.shard_size(), spf::For(SPF_FOR_PARAM_SHARD, b.module));
  }
  batch.Issue();
}

void UnitGathers::Wait(int32_t group) { c_.host.Wait(c_.streams.compute, At(done_, group)); }

void UnitGathers::Release(int32_t group) {
  const BucketGroup& buckets = c_.GroupOf(group);
  for (int32_t id : buckets.buckets) {
    Bucket& b = c_.bucket(id);
    c_.buffers.Give(c_.streams.compute, buckets.for_backward ? b.backward_gathered : b.gathered);
    if (!buckets.for_backward) c_.buffers.Give(c_.streams.compute, b.part);
  }
}

// A layer that runs twice is gathered from its parts in between, and leaves new ones.
void UnitGathers::Reshard(int32_t group) {
  for (int32_t id : c_.GroupOf(group).buckets) {
    Bucket& b = c_.bucket(id);
    const spf_addr part = c_.buffers.Take(c_.streams.compute, b.PartBytes(), {&b.groups.part},
                                          spf::For(SPF_FOR_PARAM_SHARD, b.module));
    c_.host.Copy(c_.streams.compute, part, b.gathered + Count(b.groups.part.rank) * b.PartBytes(),
                 b.PartBytes());
    c_.buffers.Give(c_.streams.compute, b.gathered);
    c_.buffers.Give(c_.streams.compute, b.part);
    b.part = part;
  }
}

void UnitGathers::Destroy() {
  for (spf_event done : done_) spf::Check(c_.host.DestroyEvent(done));
}

}  // namespace reference
