// selection.h: which cases does the command line ask for, and how does each run on sim?
#pragma once
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/runner/options.h"
#include "conformance/runner/sim_run.h"

namespace shardproof {

// The cases that the options select, legal and illegal, and what they cover. Of a profile, those
// that options.ranks ranks can run (0: any); a fact counts the others. Throws std::invalid_argument
// for unknown ids or profiles, and for an id that needs more ranks.
std::vector<Case> SelectCases(const Options& options, std::vector<std::string>* facts);

inline constexpr char kAveragesOfNccl[] =
    "NCCL averages to the bit only over a number of ranks that is a power of two";

// Why the fabric cannot run the case, though a right engine passes it elsewhere; empty: it can
// (fabric/nccl/plan.h).
std::string NotForFabric(const Case& c, const Options& options);

// How the case runs on sim: everything that the options leave open depends on seed and case id
// alone.
SimRunOptions SimOptionsFor(const Options& options, const std::string& id,
                            const std::string& folder);

}  // namespace shardproof
