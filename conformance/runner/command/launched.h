// launched.h: which of the processes that a launcher started is this one?
#pragma once
#include "conformance/runner/options.h"

namespace shardproof {

// Whether it is rank 0 of an MPI launcher, or none started it.
bool IsFirstProcess();

// Whether it is the one that writes the report of this run.
bool WritesReport(const Options& options);

}  // namespace shardproof
