// planted.h: can the fault of --fault strike, and did it?
#pragma once
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/report/report.h"
#include "conformance/runner/options.h"

namespace shardproof {

// The options with a flag that tells whether their fault struck, in this process or in one that is
// started afterwards. Throws std::invalid_argument that names the fault and what is not known of
// it.
Options WithFault(Options options);

// Throws std::invalid_argument if the fault is of a rank that no case has.
void RequireRankOfFault(const Options& options, const std::vector<Case>& cases);

bool FaultStruck(const Options& options);

// A sentence about a fault that never struck; else empty.
std::string WhyNotStruck(const Options& options, bool struck);

// At the end of a run: a fault that never struck is a problem of the run.
void TellFault(const Options& options, bool struck, RunReport* report);

}  // namespace shardproof
