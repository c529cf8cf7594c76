// unit_gathers.h: how do the shards of a bucket group become full parameters?
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
  void Wait(int32_t group) override;
  void Release(int32_t group) override;
  void Destroy() override;

 private:
  void LaunchOuter(const BucketGroup& group);

  Context& c_;
  std::vector<spf_event> done_;  // by bucket group
};

}  // namespace reference
