// schedules.h: does a case give the same results under many schedules?
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/runner/judge.h"
#include "conformance/runner/sim_run.h"

namespace shardproof {

struct ScheduleRange {
  uint64_t first_seed = 1;
  int count = 0;
};

// The seeds after the first, in pieces for workers: each piece runs the first schedule again to
// compare with.
std::vector<ScheduleRange> SplitSchedules(uint64_t first_seed, int schedules, int jobs);

// Runs the case under options (the schedule that everything is compared with), then under each seed
// of the range, and compares results and sequences of collectives (GE-32). A run that does not come
// to its end is judged like any other. mixed: seeds alternate between random and pct, else all have
// options.strategy. Stops at the first schedule that differs and says how to run it again.
Verdict CompareSchedules(const Case& c, const Plugin& plugin, const SimRunOptions& options,
                         const ScheduleRange& range, bool mixed);

// Adds what a range said to the verdict on the case itself.
void MergeSchedules(const Verdict& range, Verdict* verdict);
// Says in a note how many schedules agreed.
void NoteSchedules(int schedules, const std::string& which, Verdict* verdict);

}  // namespace shardproof
