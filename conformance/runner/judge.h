// judge.h: what is the verdict on one case?
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/checks/base/check.h"
#include "conformance/runner/sim_run.h"

namespace shardproof {

enum class Outcome : uint8_t { kPass, kFail, kUnsupported, kNotCheckable, kSuiteError };

struct Verdict {
  Outcome outcome = Outcome::kSuiteError;
  std::string reason;  // why unsupported, not checkable, or what failed in the suite
  CheckResult result;
  std::vector<uint64_t> schedules;  // hashes of the schedules that it rests on; sim only
};

// Judges a run that has happened: expected results from the oracle, then every check. Fills
// run.oracles only for the time of the call.
Verdict JudgeRun(const Case& c, Run& run);

// The verdict on a run of which nothing was recorded.
Verdict NothingRecorded();

// Runs the case on sim, under the schedule that the options say, and judges it.
Verdict JudgeOnSim(const Case& c, const Plugin& plugin, const SimRunOptions& options);

}  // namespace shardproof
