// print.h: how does a reader see a plan?
//
// To be held against the publications: the tables of the 1F1B schedule, the hooks of FSDP, the
// chain of a layer-wise step.
#pragma once
#include <string>

#include "reference/plan/facts.h"
#include "reference/plan/step.h"

namespace reference {

// One line for each stretch of operations that belong together:
//
//   m1 f  layers.0 mlp  compute  gather layers.1 (ahead), need layers.0 experts; then release ...
//
// Microbatch and direction (f, b, or dW for weight gradients that were left for later), what runs,
// the stream; what comes before: gathers, and what compute waits for (need: a gather, reduced: a
// reduction); then what follows: releases, reductions. "ahead": the stretch itself does not wait
// for the gather. "last": the reduction completes the step's gradient.
std::string PrintTable(const Plan& plan, const PlanFacts& facts);

// One line for each step.
std::string PrintSteps(const Plan& plan, const PlanFacts& facts);

}  // namespace reference
