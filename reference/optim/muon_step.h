// muon_step.h: how is Muon's update of a bucket launched?
#pragma once
#include "reference/core/context.h"

namespace reference {

// Updates momentum and main weights of a bucket of matrices from x, this rank's clipped gradient
// (fp32, my shard), on the compute stream. x is scratch afterwards.
// REQUIRES: bucket.plan.muon, and no matrix crosses the edge of my shard.
void StepMuon(Context& context, const Bucket& bucket, spf_addr x);

}  // namespace reference
