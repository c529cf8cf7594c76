// legs.h: can one run go on from the checkpoint of another?
//
// A case with several legs saves under one configuration and goes on under another: another world
// size, strategy, grid. What it trains stays: the model, the optimizer, the samples of a step.
#pragma once
#include <string>

#include "conformance/cases/case.h"

namespace shardproof {

// Gives a leg's instances what follows from the leg before it; null: there is none.
// REQUIRES: that leg is derived.
void GoOnFrom(const Case* before, Case* leg);

// Why leg i, from 0 on, cannot be asked after those before it; empty: it can, or there is one leg
// only. REQUIRES: they are derived.
std::string LegProblem(const Case& c, size_t i);

}  // namespace shardproof
