// sequential.h: how does FSDP train one microbatch after the other?
//
// The life cycle of Megatron-FSDP, hooks H0 to H12 (reference/README.md has the table of names):
//
//   forward    a unit is gathered before its first operation (H1) and goes after its last (H3)
//   backward   the same in reverse (H5, H6); after a unit's last operation its gradients are handed
//              over (H7). Parameters outside units stay until the end of the step, and their
//              gradients are handed over after the backward (H8)
//
// Collectives are at the places of gather_order.h: also those of units that this rank's program
// does not use, so that every rank takes part.
#pragma once
#include "reference/plan/writer.h"

namespace reference {

void PlanSequentialTraining(PlanWriter& write);
// Forward only.
void PlanSequentialEval(PlanWriter& write);

}  // namespace reference
