// would_add.h: in how many cases would one more value of a knob be asked, if the engine took it?
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases/support/supported.h"

namespace shardproof {

struct WouldAdd {
  std::string space, factor, value;
  size_t cases = 0;  // that have it, in the profile of an engine that takes it too
};

// For each value that the engine does not take, in spaces of which it takes something, and that is
// legal beside what it does take; most cases first. listed: the suite's own cases that were left
// out. strength, world, seed: as of FittedCases().
std::vector<WouldAdd> WhatValuesWouldAdd(const std::vector<CaseFactors>& spaces,
                                         const Supported& supported,
                                         const std::vector<Case>& listed, int strength,
                                         int32_t world, uint64_t seed);

// "in how many cases one more value of strategies would be asked: strategy optim_grads 41, ..." for
// each space that has some.
std::vector<std::string> WouldAddLines(const std::vector<WouldAdd>& values);

}  // namespace shardproof
