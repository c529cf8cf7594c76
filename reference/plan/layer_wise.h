// layer_wise.h: how does an engine train whose ranks step whole parameters?
//
//   forward, first microbatch       with overlap, buckets are gathered in a chain and published as
//                                   modules need them, and all of them before the first gradient is
//                                   added
//   backward                        gradients are added; in the last backward a bucket is reduced
//                                   when its last gradient was added, in the order of buckets
//   install                         owners' values become model weights; without overlap they are
//                                   gathered here
//
// Gathers are armed where weights are installed, at the end of a step (a skipped one too, so that
// ranks need not know) and after a load, and nowhere else: eval, further microbatches and recompute
// find the values published.
//
// The chain's order is that of forward, so that bucket i + 1 travels while the modules of bucket i
// compute, and depends on nothing but the tables: whatever a rank's program needs first, repeats or
// leaves out, its sequence of collectives is that of its peers.
//
// Dense and expert buckets form one chain (reference/README.md says why). REQUIRES: between two
// exchanges of tokens the programs of all ranks need the same buckets. Else a gather that waits for
// one rank's compute and an exchange that waits for another's gather could wait for each other.
#pragma once
#include "reference/plan/writer.h"

namespace reference {

void PlanLayerWiseTraining(PlanWriter& write);
void PlanLayerWiseEval(PlanWriter& write);  // forward only
// After the install, without overlap: everything is gathered.
void PlanLayerWiseGathers(PlanWriter& write);

}  // namespace reference
