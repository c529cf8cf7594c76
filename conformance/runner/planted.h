// planted.h: can the fault of --fault strike, and did it?
#pragma once
#include <atomic>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/report/report.h"
#include "conformance/runner/options.h"

namespace shardproof {

// Throws std::invalid_argument that names the text and what is not known of it. Processes that
// are started afterwards share FaultStruck().
void CheckFault(const Options& options);

// Throws std::invalid_argument if the fault is of a rank that no case has.
void RequireRankOfFault(const Options& options, const std::vector<Case>& cases);

// Whether it struck in this process, or in one that this one has started.
std::atomic<bool>& FaultStruck();

// At the end of a run: a fault that never struck is a problem of the run.
void TellFault(const Options& options, bool struck, RunReport* report);

}  // namespace shardproof
