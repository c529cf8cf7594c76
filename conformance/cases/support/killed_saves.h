// killed_saves.h: which checkpoints are an engine's saves killed in the middle of?
//
// Cases of two legs: one saves and is killed, again and again; the other one loads what is left
// (runner/isolation/cut_saves.h). The profile `crash`.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases/support/supported.h"

namespace shardproof {

// Cases of what the engine takes, distinct, in a fixed order: each value that places parameters and
// optimizer state, or says what is trained, is in some save. Most load under the configuration that
// saved, others under another one. world: as of ReshardCases().
std::vector<Case> KilledSaves(const std::vector<CaseFactors>& spaces, const Supported& supported,
                              int32_t world, uint64_t seed);

// "values of strategies in saves that were killed: 41 judged of 43; open: world 8, ..." for each
// space that has cases.
std::vector<std::string> KilledSavesCoverage(const std::vector<CaseFactors>& spaces,
                                             const std::vector<Case>& cases,
                                             const std::vector<Case>& judged);

}  // namespace shardproof
