// reshard.h: which checkpoints must an engine load under another configuration than saved them?
//
// Cases of three legs: one configuration saves, a second one loads and saves, the first one loads
// that and goes on. What changes from leg to leg is what places parameters and optimizer state
// (world size, axes, strategy, instances of the optimizer, experts over ranks, buckets, who gathers
// with whom); what is trained stays, down to the samples of a step. The profile `reshard`.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases/support/supported.h"

namespace shardproof {

// Cases of what the engine takes, distinct, in a fixed order. Of a factor with few values each two
// are changed into each other, of one with many neighbours and far ones; each value of what is
// trained (model, optimizer, dtypes) is in some case. world: the size of worlds that cases have
// unless a change asks for another one.
std::vector<Case> ReshardCases(const std::vector<CaseFactors>& spaces, const Supported& supported,
                               int32_t world, uint64_t seed);

// "changes of strategies: 41 judged of 43; open: world 8 and 5, ..." for each space that has cases.
std::vector<std::string> ReshardCoverage(const std::vector<CaseFactors>& spaces,
                                         const std::vector<Case>& cases,
                                         const std::vector<Case>& judged);

}  // namespace shardproof
