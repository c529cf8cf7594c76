// layer_buckets.h: which parameters travel together, in which order, and who owns them?
//
// Buckets hold trainable parameters of one communicator, optimizer and dtype, from the last
// parameter of the model to the first. Bucket 0 holds what backward completes first; forward needs
// them in reverse. Within a bucket the owners' parameters lie one owner after the other, so that
// what a rank owns is one range:
//   dealt     as dealt, of any size, and maybe nothing (ownership.h)
//   aligned   equal shards with padding at their ends (aligned_layout.h)
// Frozen parameters have no owner: every rank holds all of them, and nothing is sent.
#pragma once
#include "reference/core/context.h"

namespace reference {

struct LayerPlan {
  ModelPlan model;                    // without units; every bucket is a bucket group of its own
  std::vector<BucketLayout> layouts;  // by bucket
  std::vector<int32_t> modules;       // by bucket: the one that forward needs it for
};

// programs: of some microbatches; a parameter that several modules read in them is kept apart by
// the aligned layout. REQUIRES: all ranks find the same ones, so a module that some programs leave
// out shares no parameter. muon: as in KindOf.
LayerPlan PlanLayers(const spf_model& model, const Config& config, const EngineGroups& groups,
                     const std::vector<const spf_program*>& programs,
                     const std::vector<bool>& muon);

// This rank's place in each of them. Allocates nothing.
std::vector<Bucket> MakeLayerBuckets(const Config& config, const EngineGroups& groups,
                                     const LayerPlan& plan);

}  // namespace reference
