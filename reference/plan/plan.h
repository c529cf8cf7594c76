// plan.h: what does a rank issue in a step?
//
// Pure functions, without a host: equal facts give equal plans, and all ranks of a communicator get
// its collectives in the same order, because that order follows from what they share.
#pragma once
#include "reference/plan/facts.h"
#include "reference/plan/step.h"

namespace reference {

Plan PlanTrainStep(const PlanFacts& facts);
// Forward only. Leaves nothing behind.
Plan PlanEvalStep(const PlanFacts& facts);
// Main weights have changed, in a load: H10.
Plan PlanInstall(const PlanFacts& facts);
}  // namespace reference
