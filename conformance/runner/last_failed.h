// last_failed.h: which cases does a run ask that asks what failed in an earlier one?
#pragma once
#include "conformance/runner/options.h"

namespace shardproof {

// The options with the cases of --last-failed, and the seed that they ran under; the options
// themselves without it. Throws std::invalid_argument: the report cannot be read, is of another
// fabric, or nothing failed in it.
Options WithLastFailed(const Options& options);

}  // namespace shardproof
