// unit_gathers.h: how do the shards of a bucket group become full parameters?
//
// From all ranks that share them out; for backward from a few, if each of these has kept a part of
// what it had gathered for forward (reshard_after_forward; PyTorch FSDP2).
//
// With outer sharding the first gather since an install collects the slices of the inner shard
// before, on outer_gather. Storage belongs to the compute stream: allocated when a gather is
// launched, freed after the last read.
#pragma once
#include <vector>

#include "reference/core/context.h"
#include "reference/run/gathers.h"

namespace reference {

class UnitGathers : public Gathers {
 public:
  explicit UnitGathers(Context& context);

  void Launch(int32_t group, bool first) override;
  void LaunchParts(int32_t group) override;
  void Wait(int32_t group) override;
  void Release(int32_t group) override;
  void Reshard(int32_t group) override;
  void Destroy() override;

 private:
  void LaunchOuter(const BucketGroup& group);
  void Allocate(const BucketGroup& group);

  Context& c_;
  std::vector<spf_event> done_;  // by bucket group
};

}  // namespace reference
